"""Several ranks, and runs that are finished already."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_runs import metrics, tiny

import fognn
from fognn.training import Config, Result, fit
from fognn.training.networks import read_checkpoint


def config(ranks: int, epochs: int) -> Config:
    return tiny("gcn", machine__ranks=ranks, training__epochs=epochs)


@pytest.mark.slow
def test_two_ranks_train_and_resume(tmp_path: Path) -> None:
    """Started by Fabric: they learn what one learns, and a run that is extended has the bits of one
    that never stopped."""
    alone = fit(config(1, 1), tmp_path / "one", quiet=True)
    whole = fit(config(2, 4), tmp_path / "whole", quiet=True)
    fit(config(2, 2), tmp_path / "run", quiet=True)
    assert fit(config(2, 4), tmp_path / "run", quiet=True).val == whole.val
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")
    mine, other = (read_checkpoint(tmp_path / x / "last.ckpt")["model"] for x in ("run", "whole"))
    assert all(torch.equal(mine[name], other[name]) for name in other)
    assert (alone.ranks, whole.ranks) == (1, 2)
    one, two = metrics(tmp_path / "one")[0], metrics(tmp_path / "whole")[0]
    # Each rank has the statistics of its own part of the batch.
    assert float(two["train_loss"]) == pytest.approx(float(one["train_loss"]), rel=0.1)
    with pytest.raises(fognn.training.TrainingError, match="learning rate of 1e\\+30"):
        fit(tiny("gcn", training__lr=1e30, machine__ranks=2), tmp_path / "bad", quiet=True)


@pytest.mark.slow
def test_two_ranks_of_torchrun(tmp_path: Path) -> None:
    words = "train cluster gcn --batch-size 4 --epochs 2 --quiet -o run --set data.fraction=0.0008"
    program = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*program, "-m", "fognn", *words.split(), "--set", "machine.threads=1"],
        env=os.environ | {"PYTHONPATH": str(Path(fognn.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = Result.read(tmp_path / "run")
    assert result.ranks == 2
    assert done.stdout.count("\n") == 2, "only one rank prints"
