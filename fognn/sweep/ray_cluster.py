r"""Runs as tasks of a Ray cluster."""

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

from fognn.sweep.child import train_one
from fognn.sweep.pool import Job, Outcome
from fognn.sweep.processes import cores, with_threads
from fognn.training import Stopped
from fognn.utils.files import write_whole

__all__ = ["RayPool", "files_of", "put_files", "run_task"]

GRACE = 60.0
# A run that loses its machine is started again so often; Ray does not count what it did itself.
LOSSES = 10
# A finished file on shared storage may take a while to be seen by another machine.
_SEEN = 30.0


class RayPool:
    r"""A Ray cluster. Each run is a task with one core and one thread.

    A task whose worker or machine is lost is started again by Ray on another one. Only the process
    that calls this writes ledgers, so a run that was started twice is counted once.

    Where the machines share the folder of the runs, a run that is started again goes on from its
    last checkpoint, wherever that is. Where they do not, a run is trained in a temporary folder of
    its machine, and its files are sent back when it finishes, fails or is stopped: after the loss
    of a machine it begins again from what was there when this sweep began.

    fognn must be installed on every machine; ``FOGNN_DATA`` is that of the machine.

    Args:
        address: The address of a running cluster (``"auto"`` for the one of this machine), or
            ``"local"`` to start one here, for as long as this pool lives.
        workers: Of ``"local"``: its cores. (default: all of this machine)
        shared: Whether all machines see the run folders; if :obj:`None`, each one looks.
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
        # Each run on another machine, as long as there is one.
        self.remote = ray.remote(
            num_cpus=1, max_retries=LOSSES, scheduling_strategy="SPREAD", max_calls=1
        )(run_task)

    @property
    def free(self) -> bool:
        return True  # Ray has a queue of its own, and a cluster that grows looks at it

    def start(self, job: Job) -> None:
        config = with_threads(job.config, 1)
        if config.data.folder is not None:
            place = str(Path(config.data.folder).expanduser().resolve())
            config = replace(config, data=replace(config.data, folder=place))
        folder = job.folder.resolve()
        request = {
            "config": config.to_dict(),
            "folder": str(folder),
            # As the user named it: an absolute path means nothing on another machine.
            "command": f"fognn train --config {job.folder / 'config.yaml'} -o {job.folder}",
            "marker": str(self._marker(folder.parent)),
            "shared": self.shared,
            "session": self.session,
            "files": {} if self.shared else files_of(folder),
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
            self.ray.cancel(ref)  # as Ctrl-C in the task
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
        r"""A file by which a task sees whether it sees our folder, and not one of the same name."""
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
            reason = f"{job.folder} is not seen here: its machine does not share it"
        if not reason:
            log.unlink(missing_ok=True)
            return Outcome(job)
        with write_whole(log) as temporary:
            temporary.write_text(answer["log"] or reason, encoding="utf-8")
        return Outcome(job, reason, log)


def run_task(request: dict[str, Any]) -> dict[str, Any]:
    r"""The task: trains a run, or goes on with it, on the machine where it is called.

    Args:
        request: The run, see :meth:`RayPool.start`.

    Returns:
        Why it failed (empty if it did not), the stack, and its files by name, where they have to
        be sent.
    """
    folder, shared = Path(request["folder"]), request["shared"]
    seen = Path(request["marker"]).exists()
    if shared and not seen:
        reason = f"shared must be False: {os.uname().nodename} does not see {folder.parent}"
        return {"reason": reason, "log": reason, "files": {}}
    shared = seen if shared is None else shared
    if not shared:
        own = Path(tempfile.gettempdir()) / f"fognn-{request['session']}"
        folder = own / folder.parent.name / folder.name
        if not (folder / "config.yaml").exists():  # a lost worker's machine may have more
            put_files(request["files"], folder)
    reason = log = ""
    try:
        train_one(request["config"], folder, request["command"])
    except Stopped as stop:
        reason = str(stop)
    except Exception as error:
        reason, log = _first_line(error), traceback.format_exc()
    if shared:
        return {"reason": reason, "log": log, "files": {}}
    files = files_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # other runs of this sweep may be there
        folder.parent.rmdir()
        folder.parent.parent.rmdir()
    return {"reason": reason, "log": log, "files": files}


def files_of(folder: Path) -> dict[str, bytes]:
    r"""The files of a run folder, by name; none if it is not there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".lock", ".tmp-"))
    }


def put_files(files: dict[str, bytes], folder: Path) -> None:
    r"""Writes the files of a run folder: ``result.json`` last, so that what looks finished is."""
    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        with write_whole(folder / name) as temporary:
            temporary.write_bytes(files[name])


def _connect(ray: Any, address: str, workers: int | None) -> None:
    if address != "local":
        ray.init(address, log_to_driver=False, logging_level="ERROR")
        return
    # It lives for one sweep: no web page, no word to anyone, and room for results only.
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
