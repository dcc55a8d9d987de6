r"""Runs on a Ray cluster."""

import os
import shutil
import tempfile
import time
import traceback
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fognn.experiments.child import reason_of, train_one
from fognn.experiments.pool import Job, Outcome
from fognn.experiments.processes import cores, with_threads
from fognn.training import Stopped
from fognn.utils.files import user_path, write_whole
from fognn.utils.own_code import asked, import_file

__all__ = ["RayPool", "files_of", "put_files", "run_task"]

GRACE = 60.0
# Maximum number of restarts of a run whose machine is lost.
LOSSES = 10
# Seconds until a new file on shared storage is visible on other machines.
_SEEN = 30.0


class RayPool:
    r"""A pool of tasks on a Ray cluster, one task with one core and one thread for each run.

    Ray restarts a task whose worker or machine is lost on another one. Only the process with the
    pool writes ledgers, so a run that was started twice is counted once.

    If the machines share the folder of the runs, a restarted run resumes from its last checkpoint.
    Otherwise, a run is trained in a temporary folder of its machine, and its files are sent back
    when it finishes, fails or is interrupted; after the loss of a machine, it resumes from the
    files that existed when this sweep started it.

    fognn must be installed on every machine, and each machine uses its own ``FOGNN_DATA``. A file
    that the user imports, with layers of their own, must have the same path on every machine.

    Args:
        address (str, optional): The address of a running cluster (``"auto"`` for that of this
            machine), or ``"local"`` to start one on this machine, which ends with the pool.
            (default: :obj:`"local"`)
        workers (int, optional): Number of cores of a ``"local"`` cluster; all cores of this
            machine if :obj:`None`. (default: :obj:`None`)
        shared (bool, optional): Whether all machines share the run folders; if :obj:`None`, each
            machine checks this. (default: :obj:`None`)
    """

    def __init__(
        self, address: str = "local", workers: int | None = None, shared: bool | None = None
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("ray is not installed: pip install 'fognn[cluster]'") from error
        self.ray = ray
        self.shared = shared
        self.session = uuid.uuid4().hex
        self.tasks: dict[Any, Job] = {}
        self.markers: dict[Path, Path] = {}
        self.started = not ray.is_initialized()
        if self.started:
            _connect(ray, address, workers)
        # SPREAD: runs are distributed evenly over the machines.
        self.remote = ray.remote(
            num_cpus=1, max_retries=LOSSES, scheduling_strategy="SPREAD", max_calls=1
        )(run_task)

    @property
    def free(self) -> bool:
        return True  # Ray queues tasks, and an autoscaling cluster depends on that queue

    def start(self, job: Job) -> None:
        config = with_threads(job.config)
        if config.data.folder is not None:
            place = str(user_path(config.data.folder).resolve())
            config = replace(config, data=replace(config.data, folder=place))
        folder = job.folder.resolve()
        request = {
            "key": job.key,
            "config": config.to_dict(),
            "folder": str(folder),
            # With the path as the user gave it: an absolute one may not exist on other machines.
            "command": f"fognn train --config {job.folder / 'config.yaml'} -o {job.folder}",
            "marker": str(self._marker(folder.parent)),
            "shared": self.shared,
            "session": self.session,
            "files": {} if self.shared else files_of(folder),
            "import": asked(),
        }
        self.tasks[self.remote.remote(request)] = job

    def running(self) -> list[Job]:
        return list(self.tasks.values())

    def wait(self, seconds: float) -> list[Outcome]:
        refs = list(self.tasks)
        if not refs:
            return []
        self.ray.wait(refs, num_returns=1, timeout=seconds)
        ready, _ = self.ray.wait(refs, num_returns=len(refs), timeout=0)
        return [self._outcome(ref) for ref in ready]

    def stop(self) -> list[Outcome]:
        for ref in self.tasks:
            self.ray.cancel(ref)  # raises KeyboardInterrupt in the task
        outcomes = []
        deadline = time.monotonic() + GRACE
        while self.tasks and time.monotonic() < deadline:
            outcomes += self.wait(0.2)
        self.close()
        return outcomes

    def close(self) -> None:
        if self.ray.is_initialized():
            for ref in self.tasks:
                self.ray.cancel(ref, force=True)
            if self.started:
                self.ray.shutdown()
        self.tasks.clear()
        for marker in self.markers.values():
            marker.unlink(missing_ok=True)

    def _marker(self, folder: Path) -> Path:
        r"""Creates a file by which a task can check that its folder is this one, and not another
        of the same name."""
        if folder not in self.markers:
            folder.mkdir(parents=True, exist_ok=True)
            self.markers[folder] = folder / f".shared-{self.session}"
            self.markers[folder].touch()
        return self.markers[folder]

    def _outcome(self, ref: Any) -> Outcome:
        job = self.tasks.pop(ref)
        log = job.folder.with_name(f"{job.folder.name}.log")
        try:
            answer = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            answer = {"reason": _first_line(error), "log": str(error), "files": {}}
        put_files(answer["files"], job.folder)
        reason = answer["reason"]
        if not reason and not _appears(job.folder / "result.json"):
            reason = f"{job.folder} has no result.json: the machine of the run does not share it"
        if not reason:
            log.unlink(missing_ok=True)
            return Outcome(job)
        with write_whole(log) as temporary:
            temporary.write_text(answer["log"] or reason, encoding="utf-8")
        return Outcome(job, reason, log)


def run_task(request: dict[str, Any]) -> dict[str, Any]:
    r"""Trains or resumes a run on the machine where it is called.

    Args:
        request (dict): The run, see :meth:`RayPool.start`.

    Returns:
        A dict with the ``"reason"`` why it failed (empty if it did not), the ``"log"`` with the
        traceback, and the ``"files"`` by name (empty if the machines share the folder).
    """
    folder, shared = Path(request["folder"]), request["shared"]
    seen = Path(request["marker"]).exists()
    if shared and not seen:
        reason = f"shared must be False, {os.uname().nodename} has no {folder.parent}, got True"
        return {"reason": reason, "log": reason, "files": {}}
    shared = seen if shared is None else shared
    if not shared:
        own = Path(tempfile.gettempdir()) / f"fognn-{request['session']}"
        folder = own / folder.parent.name / folder.name
        if not (folder / "config.yaml").exists():  # else those of a lost worker of this machine
            put_files(request["files"], folder)
    reason = log = ""
    try:
        if request.get("import"):
            import_file(request["import"])
        train_one(request["config"], folder, request["command"])
    except Stopped as stop:
        reason = str(stop)
    except Exception as error:
        reason, log = reason_of(error, request["key"]), traceback.format_exc()
    if shared:
        return {"reason": reason, "log": log, "files": {}}
    files = files_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # not empty if this machine has other runs of the sweep
        folder.parent.rmdir()
        folder.parent.parent.rmdir()
    return {"reason": reason, "log": log, "files": files}


def files_of(folder: Path) -> dict[str, bytes]:
    r"""Returns the contents of the files of a run folder, by name; an empty dict if it does not
    exist."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".lock", ".tmp-"))
    }


def put_files(files: dict[str, bytes], folder: Path) -> None:
    r"""Writes the files of a run folder, ``result.json`` last, because it marks a finished run.

    Args:
        files (dict): The contents of the files, by name.
        folder (Path): The run folder.
    """
    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        with write_whole(folder / name) as temporary:
            temporary.write_bytes(files[name])


def _connect(ray: Any, address: str, workers: int | None) -> None:
    if address != "local":
        ray.init(address, log_to_driver=False, logging_level="ERROR")
        return
    # For one sweep only: no dashboard, no usage statistics, and a small object store.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        num_cpus=workers or cores(),
        include_dashboard=False,
        object_store_memory=256 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _appears(path: Path) -> bool:
    deadline = time.monotonic() + _SEEN
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
