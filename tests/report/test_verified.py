import sys
from pathlib import Path

import pytest

from fognn.experiments.verification import Verification
from fognn.report.verified import show_verification


def test_a_bar_takes_no_line_away_from_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for ``fognn verify zinc > file`` in a terminal: rich would print lines to its own."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    found = Verification((), Path("weights"), (Path("weights/zinc/x.txt"),), ("zinc/gin",))
    assert show_verification(found) is False
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[0] == "zinc/x.txt"
    assert lines[1].endswith("no line of the ledger names this file")
    assert lines[2:] == [
        "0 of 1 networks agree with the ledger to the last printed digit, over batches and over "
        "items",
        "not: zinc/x.txt",
        "measured, without weights: zinc/gin",
    ]


def test_nothing_to_verify(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_verification(Verification((), Path("weights"), (), ()))
    assert capsys.readouterr().out.startswith("0 of 0 networks agree")
