r"""Export of runs as a SLURM job array."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from fognn.experiments.processes import with_threads
from fognn.experiments.tables import Planned
from fognn.training.run_folder import check_folder
from fognn.utils import checks
from fognn.utils.files import user_path, write_whole

__all__ = ["export_slurm"]

# A task reads its line of runs.tsv: config, folder. Paths may contain spaces and other characters.
_ARRAY = r"""#!/bin/bash
#SBATCH --job-name=fognn
#SBATCH --array=0-{last}%{parallel}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --time={time}
#SBATCH --output="{logs}/%a.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{notice}
{options}
# Trains line SLURM_ARRAY_TASK_ID of runs.tsv. Run again, it resumes from the last checkpoint, so a
# task that is preempted, or whose machine fails, may be started again at any time.
cd {here} || exit 1
line=$((SLURM_ARRAY_TASK_ID + 1))
IFS=$'\t' read -r config folder < <(sed -n "${{line}}p" {table})
if [ -z "$config" ]; then
    echo "no line $line in {table_text}" >&2
    exit 2
fi
export OMP_NUM_THREADS={cpus} MKL_NUM_THREADS={cpus}

{python} -m fognn train --config "$config" -o "$folder" --no-ledger --quiet &
run=$!
late=
# Shortly before the time limit SLURM sends USR1: the run saves its state, and is queued again.
trap 'late=yes; kill -TERM $run' USR1
trap 'kill -TERM $run' TERM INT
wait $run
code=$?
while kill -0 $run 2>/dev/null; do  # a signal ended the wait, not the run
    wait $run
    code=$?
done
if [ -n "$late" ] && [ $code -ne 0 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit $code
"""

_LEDGER = r"""#!/bin/bash
#SBATCH --job-name=fognn-ledger
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --time={time}
#SBATCH --output="{logs}/ledger.log"
{options}
# Adds the finished runs to the ledger. Runs that failed in the array are tried again here.
cd {here} || exit 1
exec {command}
"""

_SUBMIT = r"""#!/bin/bash
# Queues the {count} runs, and after them the step that writes the ledger.
set -e
array=$(sbatch --parsable {array})
array=${{array%%;*}}
sbatch --dependency="afterany:$array" {ledger}
echo "squeue --job $array shows the runs; run this script again to resume them"
"""


def export_slurm(
    planned: list[Planned],
    path: str | Path,
    runs: str | Path = "runs",
    *,
    command: str,
    parallel: int = 32,
    cpus: int = 1,
    time: str = "24:00:00",
    options: Sequence[str] = (),
    python: str = sys.executable,
) -> Path:
    r"""Writes a SLURM job array. Nothing is submitted.

    The folder has ``submit.sh``, which submits the jobs; ``array.sh``, whose task :math:`i` trains
    the run of line :math:`i` of ``runs.tsv``; ``ledger.sh``, which runs after the array; and a
    configuration for each run. All machines must share the folder, ``runs`` and the data.

    Args:
        planned (list): The runs.
        path (str): The folder to write.
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        command (str): The command that writes the ledger, such as
            ``fognn reproduce zinc --seeds 4``; it is run in the current working directory.
        parallel (int, optional): Maximum number of runs at a time. (default: :obj:`32`)
        cpus (int, optional): Number of cores, and of threads, of each run. (default: :obj:`1`)
        time (str, optional): The time limit of a task, in SLURM's format. A run that takes longer
            is queued again. (default: :obj:`"24:00:00"`)
        options (list, optional): Further options of ``sbatch``, such as
            ``["--partition=long", "--mem=4G"]``. (default: :obj:`()`)
        python (str, optional): The Python interpreter on the cluster.
            (default: ``sys.executable``)

    Returns:
        The path of ``submit.sh``.
    """
    for name, value in (("parallel", parallel), ("cpus", cpus)):
        checks.positive_int("export_slurm", name, value)
    if not planned:
        raise ValueError("export_slurm: planned must have at least one run, got none")
    for option in options:
        if not option.startswith("-") or "\n" in option:
            raise ValueError(
                f"export_slurm: options must be of sbatch, such as --mem=4G, got {option!r}"
            )
    path, runs = user_path(path).resolve(), user_path(runs).resolve()
    lines = []
    for run in planned:
        folder = run.folder(runs)
        config = path / "configs" / run.table / f"{run.name}.yaml"
        check_folder(folder, run.config)
        if "\t" in f"{config}{folder}" or "\n" in f"{config}{folder}":
            raise ValueError(
                f"export_slurm: path and runs must not have tabs or newlines, got {str(folder)!r}"
            )
        _write(config, with_threads(run.config, cpus).to_yaml())
        lines.append(f"{config}\t{folder}\n")
    _write(path / "runs.tsv", "".join(lines))
    # SLURM does not create the folder of the logs.
    (path / "logs").mkdir(exist_ok=True)
    filled = {
        "last": len(planned) - 1,
        "count": len(planned),
        "parallel": parallel,
        "cpus": cpus,
        "time": time,
        "notice": 120,
        "logs": path / "logs",
        "options": "".join(f"#SBATCH {option}\n" for option in options),
        "here": shlex.quote(os.getcwd()),
        "table": shlex.quote(str(path / "runs.tsv")),
        "table_text": path / "runs.tsv",
        "python": shlex.quote(python),
        "command": command,
        "array": shlex.quote(str(path / "array.sh")),
        "ledger": shlex.quote(str(path / "ledger.sh")),
    }
    for name, text in (("array", _ARRAY), ("ledger", _LEDGER), ("submit", _SUBMIT)):
        _write(path / f"{name}.sh", text.format(**filled))
        (path / f"{name}.sh").chmod(0o755)
    return path / "submit.sh"


def _write(path: Path, text: str) -> None:
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
