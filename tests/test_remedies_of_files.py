"""Whatever a message about a ledger, a comparison or a file tells the user to do works. Not
followed in any test, because they need the network or another disk: to download a file again, and
to free space."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from compared_runs import FakeTraining
from filelock import FileLock
from tiny_runs import molecules

from fognn.cli import main
from fognn.paper import jsonl_file
from fognn.paper.jsonl_file import JsonlFile
from fognn.paper.ledger import ledger_of
from fognn.sweep.compare_runs import measure, networks
from fognn.sweep.reproduce import collect
from fognn.training import fit
from fognn.utils.errors import FileError
from fognn.utils.files import check_regular, user_path, write_whole


def test_end_the_process_that_locks_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_file, "_TIMEOUT", 0.1)
    file = JsonlFile(tmp_path / "zinc.jsonl")
    lock = FileLock(tmp_path / ".zinc.jsonl.lock")
    with lock, pytest.raises(FileError, match=r"held .*lock for .*: end that process and try"):
        file.put({"key": "a"})
    file.put({"key": "a"})
    assert file.read() == [{"key": "a"}]


def test_remove_one_of_two_lines(tmp_path: Path) -> None:
    file = JsonlFile(tmp_path / "zinc.jsonl")
    file.path.write_text('{"key": "a"}\n{"key": "a", "b": 1}\n')
    with pytest.warns(UserWarning, match=r"line 2.*which line 1 has too; remove one of the two"):
        file.read()
    file.path.write_text('{"key": "a", "b": 1}\n')
    assert file.read() == [{"key": "a", "b": 1}]


def test_give_the_comparison_another_name(tmp_path: Path) -> None:
    source = str(tmp_path / "mine.pt")

    def compare(name: str | None = None) -> Any:
        found = networks(source, ["gin"], 5000, {"epochs": 2}, name)
        train = FakeTraining(tmp_path / "results", lambda run: (0.4, 0.5))
        return measure(found, tmp_path / "runs", tmp_path / "results", train, 1, [1e-3])

    torch.save(molecules(40), source)
    found = compare()
    (entry, *_) = found.entries
    ledger = ledger_of(entry.table, tmp_path / "results")
    entry.result["fingerprint"] = "that of other data"
    ledger.add(entry)
    with pytest.raises(ValueError, match=r"have changed .*: give the comparison another name"):
        compare()
    assert len(compare("other").entries) == 2


def test_a_run_of_a_comparison_is_entered_by_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.save(molecules(40), tmp_path / "mine.pt")
    values = {"epochs": 1, "threads": 1}
    run = networks(str(tmp_path / "mine.pt"), ["gin"], 5000, values)[0]
    folder, results = run.folder(tmp_path / "runs"), tmp_path / "results"
    fit(run.config, folder, quiet=True)
    monkeypatch.setattr(sys, "argv", ["fognn", "collect", str(folder), "--results", str(results)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    text = capfd.readouterr().err
    assert "collect: RUN must not be a run of a comparison" in text
    assert f"fognn compare with --runs {tmp_path / 'runs'} enters it" in text
    assert not results.exists()
    collect([run], tmp_path / "runs", results)  # as fognn compare does
    assert [entry.key for entry in ledger_of(run.table, results).entries()] == [run.key]


def test_name_another_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileError, match=r"loop cannot be read .*: name another file"):
        check_regular(tmp_path / "loop")
    (tmp_path / "other").touch()
    check_regular(tmp_path / "other")


def test_name_another_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = "check that its folder is writable, or name another one"
    with pytest.raises(FileError, match=words), write_whole(tmp_path / "file" / "a"):
        pass
    with write_whole(tmp_path / "folder" / "a") as temporary:
        temporary.touch()
    assert (tmp_path / "folder" / "a").exists()


def test_name_the_folder_in_full_or_set_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileError, match="name the folder in full, or set HOME"):
        user_path("~nosuchuser/x")
    monkeypatch.setitem(os.environ, "HOME", str(tmp_path))
    assert user_path("~/x") == tmp_path / "x" == user_path(tmp_path / "x")
