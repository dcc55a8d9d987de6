r"""Runs on a Ray cluster."""

import os
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from fognn.experiments.pool import GRACE, Job, Outcome, reason_of, train_job
from fognn.training import Config, Stopped
from fognn.training.environment import cores
from fognn.utils.files import user_path, write_whole
from fognn.utils.own_code import asked, import_file

__all__ = ["RayPool", "files_of", "put_files", "run_task"]

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
    files that existed when it was started.

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
        self.markers: set[Path] = set()
        self.started = not ray.is_initialized()
        if self.started:
            options: dict[str, Any] = {"address": address}
            if address == "local":  # for these runs only: no dashboard, a small object store
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                options = {"num_cpus": workers or cores(), "include_dashboard": False}
                options["object_store_memory"] = 256 * 2**20
            ray.init(**options, log_to_driver=False, logging_level="ERROR")
        # SPREAD: runs are distributed evenly over the machines.
        options = {"num_cpus": 1, "max_retries": LOSSES, "scheduling_strategy": "SPREAD"}
        self.remote = ray.remote(**options, max_calls=1)(run_task)

    @property
    def free(self) -> bool:
        return True  # Ray queues tasks, and an autoscaling cluster depends on that queue

    def start(self, job: Job) -> None:
        folder = job.folder.resolve()
        # By this file a task checks that its folder is this one, and not another of the same name.
        marker = folder.parent / f".shared-{self.session}"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        self.markers.add(marker)
        config = job.config
        if config.data.folder is not None:
            place = str(user_path(config.data.folder).resolve())
            config = config.with_values({"data.folder": place})
        request = {
            "key": job.key,
            "config": config.to_dict(),
            "given": job.given,
            "folder": str(folder),
            # With the path as the user gave it: an absolute one may not exist on other machines.
            "command": f"fognn train --config {job.folder / 'config.yaml'} -o {job.folder}",
            "marker": str(marker),
            "shared": self.shared,
            "session": self.session,
            "files": {} if self.shared else files_of(folder),
            "import": asked(),
        }
        self.tasks[self.remote.remote(request)] = job

    def wait(self, seconds: float) -> list[Outcome]:
        if not self.tasks:
            return []
        self.ray.wait(list(self.tasks), num_returns=1, timeout=seconds)
        ready, _ = self.ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=0)
        return [self._outcome(ref) for ref in ready]

    def close(self, save: bool = False) -> list[Outcome]:
        outcomes = []
        deadline = time.monotonic() + GRACE
        for ref in self.tasks if save else ():
            self.ray.cancel(ref)  # raises KeyboardInterrupt in the task
        while save and self.tasks and time.monotonic() < deadline:
            outcomes += self.wait(0.2)
        if self.ray.is_initialized():
            for ref in self.tasks:
                self.ray.cancel(ref, force=True)
            if self.started:
                self.ray.shutdown()
        self.tasks.clear()
        for marker in self.markers:
            marker.unlink(missing_ok=True)
        return outcomes

    def _outcome(self, ref: Any) -> Outcome:
        job = self.tasks.pop(ref)
        try:
            answer = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            return Outcome(job, reason_of(error)[:300])
        put_files(answer["files"], job.folder)
        reason = answer["reason"]
        deadline = time.monotonic() + _SEEN
        while not reason and not (job.folder / "result.json").exists():
            time.sleep(0.2)
            if time.monotonic() > deadline:
                reason = f"the machine of the run does not share {job.folder}"
        return Outcome(job, reason)


def run_task(request: dict[str, Any]) -> dict[str, Any]:
    r"""Trains or resumes a run on the machine where it is called.

    Args:
        request (dict): The run, see :meth:`RayPool.start`.

    Returns:
        A dict with the ``"reason"`` why it failed (empty if it did not), and the ``"files"`` by
        name (empty if the machines share the folder).
    """
    folder, shared = Path(request["folder"]), request["shared"]
    seen = Path(request["marker"]).exists()
    if shared and not seen:
        reason = f"shared must be False, {os.uname().nodename} has no {folder.parent}, got True"
        return {"reason": reason, "files": {}}
    shared = seen if shared is None else shared
    if not shared:
        own = Path(tempfile.gettempdir()) / f"fognn-{request['session']}"
        folder = own / folder.parent.name / folder.name
        if not (folder / "config.yaml").exists():  # else those of a lost worker of this machine
            put_files(request["files"], folder)
    reason = ""
    try:
        if request["import"]:
            import_file(request["import"])
        config = Config.from_dict(request["config"])
        job = Job(request["key"], config, folder, request["given"])
        train_job(job, command=request["command"])
    except (Exception, Stopped) as error:
        reason = reason_of(error)
    if shared:
        return {"reason": reason, "files": {}}
    files = files_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # not empty if this machine has other runs
        folder.parent.rmdir()
        folder.parent.parent.rmdir()
    return {"reason": reason, "files": files}


def files_of(folder: Path) -> dict[str, bytes]:
    r"""Returns the contents of the files of a run folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".lock", ".tmp-"))
    }


def put_files(files: dict[str, bytes], folder: Path) -> None:
    r"""Writes the files of a run folder, ``result.json`` last, because it marks a finished run."""
    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        with write_whole(folder / name) as temporary:
            temporary.write_bytes(files[name])
