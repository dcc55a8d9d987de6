import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import pytest
from tiny_runs import tiny

from fognn.training.progress import RunProgress, duration


def row(epoch: int) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "lr": 5e-4,
        "train_loss": 1.23456,
        "val_balanced_accuracy_items": 56.789,
        "train_seconds": 2.0,
        "val_seconds": 0.5,
    }


class Terminal:
    """A pseudo-terminal in place of standard error, and all that was written to it."""

    def __init__(self) -> None:
        self.reader, writer = pty.openpty()
        self.stream: TextIO = os.fdopen(writer, "w")
        self.seen = b""
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self.reader, 4096)
            except OSError:  # Linux raises it when the other end is closed
                return
            if not part:
                return
            self.seen += part

    def text(self) -> str:
        self.stream.close()
        self.thread.join(timeout=10)
        return self.seen.decode()


@contextmanager
def in_a_terminal() -> Iterator[Terminal]:
    """No fixture: pytest takes standard error back when a test begins."""
    terminal = Terminal()
    size = struct.pack("HHHH", 40, 200, 0, 0)
    fcntl.ioctl(terminal.reader, termios.TIOCSWINSZ, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.stream)
        yield terminal
    terminal.text()
    os.close(terminal.reader)


def plain(text: str) -> str:
    """Without the codes of colours and of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def two_epochs(progress: RunProgress) -> None:
    for epoch in (1, 2):
        progress.epoch(epoch, 0)
        for _ in range(2):
            progress.step(0.75)
            time.sleep(0.15)  # rich draws ten times a second
        progress.end(row(epoch))
    progress.close()


def test_bars_in_a_terminal() -> None:
    with in_a_terminal() as terminal:
        progress = RunProgress(tiny(training__schedule="none"), 2, 0)
        progress.note("hello")
        two_epochs(progress)
    text = plain(terminal.text())
    assert "hello" in text
    scores = r"loss 1\.2346, val balanced accuracy 56\.7890, lr 5\.0e-04"
    assert re.search(rf"gcn\+fog .* 1/3 .*{scores}", text)
    assert re.search(r"epoch 1 .* 2/2 .*loss 0\.7500", text)
    assert "epoch 2 " in text
    assert "epoch 1/3" not in text, "no lines beside the bars"


def test_lines_elsewhere(capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    progress = RunProgress(tiny(training__epochs=12, training__schedule="none"), 2, 1)
    progress.note("hello")
    progress.epoch(2, 0)
    progress.step(0.5)
    clock[0] += 10
    progress.end(row(2))
    clock[0] += 20
    progress.end(row(3))
    progress.close()
    seen = capsys.readouterr()
    scores = "loss 1.2346, val balanced accuracy 56.7890, lr 5.0e-04, 2.5 s"
    assert seen.err == (
        f"hello\nepoch 2/12: {scores}, 1 min 40 s left\nepoch 3/12: {scores}, 2 min 15 s left\n"
    )
    assert seen.out == ""


def test_quiet_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(tiny(), 2, 0, quiet=True)
    progress.note("hello")
    two_epochs(progress)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (12.4, "12 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 00 min"),
        (3725, "1 h 02 min"),
        (90000, "25 h 00 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
