r"""The environment of a run: versions, commit, machine and device."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from fognn import __version__
from fognn.data.sources import cache_dir, data_dir

__all__ = ["commit", "cores", "device_of", "environment", "peak_memory", "report_environment"]

# Runs of a clone add to its ledgers and weights, which changes no code.
_ADDED = (":(exclude)results", ":(exclude)weights")
_PACKAGES = ("torch", "torch_geometric", "lightning_fabric", "torchmetrics", "numpy")


def environment() -> dict[str, Any]:
    r"""Returns versions, commit, threads and machine, as in ``result.json``."""
    versions = {"fognn": __version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in _PACKAGES}
    versions["torch"] = torch.__version__  # with the build, such as +cpu
    return {
        "versions": versions,
        "commit": commit(),
        "threads": torch.get_num_threads(),
        "machine": {
            "system": platform.platform(),
            "cpu": _cpu(),
            "cores": cores(),
            "memory_gib": _memory(),
        },
    }


def report_environment() -> str:
    r"""Returns the environment as text, for ``fognn info``."""
    content = environment()
    machine = content["machine"]
    lines = dict(content["versions"])
    lines |= {
        "commit": content["commit"] or "none (not run from a clone)",
        "system": machine["system"],
        "processor": f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        "threads": content["threads"],
        "device": device_of("auto"),
        "data folder": data_dir() or "none (FOGNN_DATA is not set)",
        "cache": cache_dir(),
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in lines.items())


def cores() -> int:
    r"""Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory(device: str) -> int:
    r"""Returns the largest memory that this process has had, in bytes: that of tensors on the
    device for ``"cuda"``, otherwise all of its resident memory."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which Linux carries over from the process that started this one.
        lines = status.read_text(encoding="utf-8").splitlines()
        found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        if found:
            return int(found[0]) * 1024
    import resource  # which Windows does not have

    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def device_of(name: str) -> str:
    r"""Returns the device to train on.

    Args:
        name (str): ``"cpu"``, ``"cuda"``, ``"mps"``, or ``"auto"`` for the fastest that this
            machine has.

    Raises:
        ValueError: If this machine does not have the device.
    """
    here = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return "cuda" if here["cuda"] else "mps" if here["mps"] else "cpu"
    if not here.get(name):
        found = ", ".join(device for device, there in here.items() if there)
        raise ValueError(f"device must be one that this machine has ({found}), got {name!r}")
    return name


def commit() -> str | None:
    r"""Returns the commit of the clone that fognn runs from, with ``" with changes"`` appended if
    tracked files differ from it, apart from the results and weights that runs add; :obj:`None`
    without a clone."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    git = ["git", "-C", str(root)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        status = [*git, "status", "--porcelain", "-uno", "--", ".", *_ADDED]
        changed = subprocess.run(status, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):  # Windows
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
