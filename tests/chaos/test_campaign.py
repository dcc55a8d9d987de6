"""The campaign itself: that it finds what is wrong, and a few trials of its parts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_entries import entry

from chaos import campaign, writers
from chaos.commands import Ended, judge
from chaos.findings import Counts
from chaos.kinds import bits
from fognn.experiments.ledger import Ledger
from fognn.experiments.tables import plan

TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 3\n'


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (Ended(0, "0.3\n", ""), "done"),
        (Ended(1, "", "fognn: warning: dead units\nfognn: x.csv must have a column y\n"), "line"),
        (Ended(1, "0 of 1 runs are finished\nfailed: a/b: FileError: disk is full\n", ""), "line"),
        (Ended(1, "GCN failed at all learning rates and is left out: full\n", ""), "line"),
        (Ended(1, "failed: a/b: exit code 1\n", ""), "exit code 1 without"),
        (Ended(1, "", ""), "exit code 1 without"),
        (Ended(2, "", "fognn: x\n"), "exit code 2 without"),
        (Ended(1, "", TRACE), "traceback: KeyError: 3"),
        (Ended(0, "", TRACE), "traceback"),
        (Ended(-11, "", ""), "killed by SIGSEGV"),
        (Ended(-9, "", "", hung=True), "hangs"),
    ],
)
def test_how_a_command_ends(ended: Ended, outcome: str) -> None:
    assert judge(ended).startswith(outcome)


def test_a_finding_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("smiles\n")
    counts = Counts(tmp_path / "chaos")
    counts.add("files", "csv", "line")
    counts.add("files", "csv", "same")
    assert counts.findings == []
    assert not counts.folder.exists()
    counts.add(
        "files", "csv", "hangs", [tmp_path / "bad.csv"], ["train", "bad.csv", "a b"], "output"
    )
    assert (counts.folder / "001" / "bad.csv").read_text() == "smiles\n"
    assert "fognn train bad.csv 'a b'" in (counts.folder / "001" / "command.sh").read_text()
    counts.add("files, commands", "csv", "done")
    counts.add("kills", "folds", "same")
    found = counts.of("files")
    assert found["counts"] == {
        "files": {"line": 1, "same": 1, "finding": 1},
        "files, commands": {"done": 1},
    }
    assert found["kinds"]["files: csv"] == found["counts"]["files"]
    assert [finding["outcome"] for finding in found["findings"]] == ["hangs"]
    assert counts.of("kills")["findings"] == []


def test_lost_and_changed_lines_are_found(tmp_path: Path) -> None:
    entries = [entry(run, 0.5) for run in plan("zinc", ["gcn"], seeds=3, ours=False)]
    path = tmp_path / "zinc.jsonl"
    for one in entries[:2]:
        Ledger(path).add(one)
    (tmp_path / "added-0.txt").write_text("".join(f"{one.key}\n" for one in entries[:2]))
    assert writers.verdict(path, entries) == "same"
    (tmp_path / "added-1.txt").write_text(f"{entries[2].key}\n")
    assert writers.verdict(path, entries) == f"{entries[2].key} is lost"
    path.write_text(path.read_text().replace("0.5", "0.6"))
    assert "not as it was given" in writers.verdict(path, entries)


def test_bits_are_those_of_the_weights_and_not_of_the_clock(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("epoch,val_loss,train_seconds\n1,0.5,3.0\n")
    before = bits(tmp_path)
    (tmp_path / "metrics.csv").write_text("epoch,val_loss,train_seconds\n1,0.5,4.0\n")
    assert bits(tmp_path) == before
    (tmp_path / "metrics.csv").write_text("epoch,val_loss,train_seconds\n1,0.6,4.0\n")
    assert bits(tmp_path) != before


def test_a_few_trials(tmp_path: Path) -> None:
    # In a process of its own, because fork() needs one in which torch has started no threads.
    arguments = ["--parts", "kills,writers", "--trials", "3", "--output", "out/chaos.json"]
    done = subprocess.run(
        [sys.executable, campaign.__file__, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "out" / "chaos.json").read_text())
    assert written["kills"]["counts"]["kills"]["same"] >= 3
    assert written["writers"]["counts"] == {"writers": {"same": 3}}
    assert written["kills"]["findings"] == written["writers"]["findings"] == []
    assert written["kills"]["command"].endswith("campaign.py --parts kills,writers --trials 3")
