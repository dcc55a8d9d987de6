import hashlib
import io
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from fognn.datasets import download as module
from fognn.datasets.download import download
from fognn.utils.errors import FileError


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "file.bin"


def part(target: Path, sha256: str) -> Path:
    return target.with_name(f"file.bin.{sha256[:12]}.part")


def test_download(server: Any, target: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(server.url, server.sha256, target)
    assert target.read_bytes() == server.content
    assert list(target.parent.iterdir()) == [target]
    assert capfd.readouterr().err == ""  # no bar: the output is no terminal


def test_progress_bar_in_a_terminal(
    server: Any, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    download(server.url, server.sha256, target)
    assert "file.bin: 100%" in terminal.getvalue()


def test_without_a_length(server: Any, target: Path) -> None:
    server.sends_length = False
    download(server.url, server.sha256, target)
    assert target.read_bytes() == server.content


def test_resumes_where_it_stopped(server: Any, target: Path) -> None:
    server.stops_after = 1_500_000
    with pytest.raises(FileError, match=r"stopped after 1,500,000 of 3,072,000 bytes.*goes on"):
        download(server.url, server.sha256, target)
    assert not target.exists()  # a part is never taken for the file
    server.stops_after = None
    download(server.url, server.sha256, target)
    assert target.read_bytes() == server.content
    assert server.ranges == [None, "bytes=1500000-"]


@pytest.mark.parametrize("how", ["knows_range", "wrong_piece"])
def test_begins_again_when_the_server_will_not_resume(server: Any, target: Path, how: str) -> None:
    server.stops_after = 1_000_000
    with pytest.raises(FileError, match="goes on from there"):
        download(server.url, server.sha256, target)
    server.stops_after = None
    setattr(server, how, not getattr(server, how))
    download(server.url, server.sha256, target)
    assert target.read_bytes() == server.content
    fresh = [None] if how == "wrong_piece" else []
    assert server.ranges == [None, "bytes=1000000-", *fresh]


@pytest.mark.parametrize("what", ["all", "more", "other", "nothing"])
def test_any_old_part_ends_well(server: Any, target: Path, what: str) -> None:
    whole = server.content
    content = {"all": whole, "more": whole + b"more", "other": b"x" * 1000, "nothing": b""}[what]
    part(target, server.sha256).write_bytes(content)
    download(server.url, server.sha256, target)
    assert target.read_bytes() == whole
    assert list(target.parent.iterdir()) == [target]


def test_part_of_another_version_is_not_continued(server: Any, target: Path) -> None:
    part(target, "0" * 64).write_bytes(b"x" * 1000)
    download(server.url, server.sha256, target)
    assert server.ranges == [None]


def test_wrong_checksum(server: Any, target: Path) -> None:
    wanted = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(FileError, match=f"SHA-256 is {server.sha256}, it must be {wanted}; try"):
        download(server.url, wanted, target)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("status", [403, 404, 416, 500])
def test_server_says_no(server: Any, target: Path, status: int) -> None:
    server.status = status
    with pytest.raises(FileError, match=rf"answered {status} .*by hand and put it at"):
        download(server.url, server.sha256, target)


def test_nobody_listens(target: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x"
    with pytest.raises(FileError, match=r"could not be reached \(.*refused\): check the network"):
        download(url, "0" * 64, target)
    assert not target.exists()


def test_silent_server(server: Any, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.2)
    server.slow = 0.6
    with pytest.raises(FileError, match="stopped in the middle"):
        download(server.url, server.sha256, target)
