import errno
import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from fognn.experiments import jsonl_file
from fognn.experiments.jsonl_file import JsonlFile
from fognn.utils.errors import FileError

FORK = multiprocessing.get_context("fork")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def line(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, **more}


def on_disk(path: Path) -> list[dict[str, Any]]:
    """Reads the file independently: a JSON object in each line, and a newline at the end."""
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(part) for part in text[:-1].split("\n")]


def in_child(work: Callable[[], None]) -> int:
    """Runs it in a process of its own, and gives the exit code."""
    process = FORK.Process(target=work)
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def test_order_and_replacement(tmp_path: Path) -> None:
    lines = JsonlFile(tmp_path / "deep" / "a.jsonl")
    assert lines.read() == []
    for key, value in (("b", 1), ("a", 2), ("c", 3), ("a", 4)):
        lines.put(line(key, value=value))
    assert lines.read() == [line("b", value=1), line("a", value=4), line("c", value=3)]
    assert on_disk(lines.path) == lines.read()


def test_several_lines_in_one_step(tmp_path: Path) -> None:
    lines = JsonlFile(tmp_path / "a.jsonl")
    for key in "abc":
        lines.put(line(key, value=1))

    def change(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert [content["key"] for content in found] == ["a", "b", "c"]
        return [line("d", value=2), line("b", value=3)]

    lines.change(change)
    assert [(found["key"], found["value"]) for found in lines.read()] == [
        ("a", 1), ("b", 3), ("c", 1), ("d", 2),
    ]  # fmt: skip
    before = lines.path.read_bytes()
    with pytest.raises(ValueError, match="'e' must have plain, finite values"):
        lines.change(lambda _: [line("a", value=5), line("e", value=float("nan"))])
    assert lines.path.read_bytes() == before, "all of them or none"


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.text())
def test_any_json_comes_back(content: dict[str, Any], key: str) -> None:
    text = jsonl_file._dump(content | {"key": key})
    assert "\n" not in text
    assert jsonl_file._load(text.encode()) == content | {"key": key}


def test_the_order_of_keys_is_fixed() -> None:
    one = {"key": "k", "z": {"b": 1, "a": [{"d": 2, "c": 3}]}, "y": 4}
    other = {"key": "k", "z": {"a": [{"c": 3, "d": 2}], "b": 1}, "y": 4}
    assert jsonl_file._dump(one) == jsonl_file._dump(other)
    assert list(json.loads(jsonl_file._dump(one))) == ["key", "z", "y"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"key": "k", "v": float("nan")}, "not JSON compliant"),
        ({"key": "k", "v": {"w": [float("inf")]}}, "not JSON compliant"),
        ({"key": "k", "v": {1, 2}}, "set"),
        ({"key": 3}, "key must be a str, got 3"),
        ({"v": 3}, "'key'"),
    ],
)
def test_what_is_no_json_is_not_written(tmp_path: Path, content: Any, reason: str) -> None:
    lines = JsonlFile(tmp_path / "a.jsonl")
    lines.put(line("old"))
    before = lines.path.read_bytes()
    with pytest.raises(ValueError, match=f"must have plain, finite values.*{reason}"):
        lines.put(content)
    assert lines.path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"key": "a"}\n{"key": "b", "v": 1', 2),  # cut off
        ('{"key": "a"}\n\n{"key" "b"}\n', 3),
        ('{"key": "a"}{"key": "b"}\n', 1),  # the newline between two lines is lost
        ('{"key": "a"}\n<<<<<<< HEAD\n', 2),
        ("[1, 2]\n", 1),
        ('{"v": 1}\n', 1),
        ('{"key": 1}\n', 1),
        ('{"key": "a", "v": NaN}\n', 1),
        ("[" * 100_000, 1),
        ("\0\0\0\n", 1),
    ],
)
def test_a_damaged_line_is_named_and_kept(tmp_path: Path, text: str, number: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.warns(UserWarning, match=rf"a\.jsonl, line {number}: must be .* is skipped"):
        before = JsonlFile(path).read()
    assert before == [line("a")] * (number > 1)
    JsonlFile(path).put(line("new"))
    kept = "\n".join(part for part in text.split("\n") if part)
    assert path.read_text() == f'{kept}\n{{"key": "new"}}\n'
    with pytest.warns(UserWarning, match=r"a\.jsonl, line"):
        assert JsonlFile(path).read() == [*before, line("new")]


def test_a_key_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b"}\n{"key": "a", "v": 1}\n')
    words = r"line 3, 'a': key must be unique, got 'a', which line 1 has"
    with pytest.warns(UserWarning, match=words):
        assert JsonlFile(path).read() == [line("a"), line("b")]
    JsonlFile(path).put(line("a", v=2))
    assert on_disk(path) == [line("a", v=2), line("b"), line("a", v=1)]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"key": "\xff"}\n{"key": "a"}\n')
    with pytest.warns(UserWarning, match=r"a\.jsonl, line 1: must be text in UTF-8"):
        assert JsonlFile(path).read() == [line("a")]
    JsonlFile(path).put(line("b"))
    assert path.read_bytes() == b'{"key": "\xff"}\n{"key": "a"}\n{"key": "b"}\n'


def test_the_check_of_a_file(tmp_path: Path) -> None:
    def positive(content: dict[str, Any]) -> None:
        if not content.get("v", 1) > 0:
            raise ValueError(f"v must be positive, got {content['v']}")

    path = tmp_path / "a.jsonl"
    path.write_text('{"key": "a", "v": -1}\n{"key": "b"}\n')
    lines = JsonlFile(path, positive)
    # The new line of the same key is added, and what was wrong with the old one can be looked up.
    lines.put(line("a", v=3))
    assert on_disk(path) == [line("a", v=-1), line("b"), line("a", v=3)]
    with pytest.warns(UserWarning, match=r"a\.jsonl, line 1, 'a': v must be positive, got -1"):
        assert lines.read() == [line("b"), line("a", v=3)]
    lines.put(line("a", v=4))
    assert on_disk(path) == [line("a", v=-1), line("b"), line("a", v=4)]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n\n", "  "])
def test_without_a_last_newline(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(f'{{"key": "a"}}\r\n{{"key": "b"}}{end}'.encode())
    JsonlFile(path).put(line("c"))
    assert on_disk(path) == [line("a"), line("b"), line("c")]


def test_lines_of_others_stay_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    # Written by a later version, or by hand: more keys, other spaces, letters that end a line
    # for some programs.
    strange = '{"later":  [1.50, 1e2], "key":"a", "text": "ä\u2028\u0085\\u00e4"}'
    path.write_text(f"{strange}\n", encoding="utf-8")
    lines = JsonlFile(path)
    lines.put(line("b"))
    lines.put(line("b", v=1))
    assert path.read_text(encoding="utf-8") == f'{strange}\n{{"key": "b", "v": 1}}\n'


def test_twenty_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "results" / "a.jsonl"
    gate = FORK.Event()

    def work(number: int) -> None:
        gate.wait()
        for turn in range(3):
            JsonlFile(path).put(line(f"{number}/{turn}", v="x" * 1000))
            JsonlFile(path).put(line("shared", v=number))

    processes = [FORK.Process(target=work, args=(number,)) for number in range(20)]
    for process in processes:
        process.start()
    gate.set()
    while any(process.is_alive() for process in processes):
        JsonlFile(path).read()  # a reader never sees half a file
        time.sleep(0.01)
    assert [process.exitcode for process in processes] == [0] * 20
    keys = [own["key"] for own in on_disk(path)]
    assert sorted(keys) == sorted(
        ["shared", *(f"{number}/{turn}" for number in range(20) for turn in range(3))]
    )
    assert not list(path.parent.glob(".tmp-*"))


@pytest.mark.parametrize("moment", ["before the text", "half the text", "before", "after"])
def test_killed_during_an_add(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "a.jsonl"
    lines = JsonlFile(path)
    lines.put(line("a", v=1))
    lines.put(line("b", v=1))
    real_replace, real_write = os.replace, Path.write_bytes

    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def half(self: Path, data: bytes) -> None:
        real_write(self, data[: len(data) // 2])
        die()

    def after(*names: Any) -> None:
        real_replace(*names)
        die()

    def work() -> None:
        # Only this process has these; it ends with them.
        if moment == "before the text":
            Path.write_bytes = die  # type: ignore[assignment,method-assign]
        elif moment == "half the text":
            Path.write_bytes = half  # type: ignore[assignment,method-assign]
        else:
            os.replace = die if moment == "before" else after  # type: ignore[assignment]
        lines.put(line("a", v=2))

    assert in_child(work) == -signal.SIGKILL
    value = 2 if moment == "after" else 1
    assert on_disk(path) == [line("a", v=value), line("b", v=1)]
    # The lock was given back, what was left behind is cleared away, and nothing is lost.
    lines.put(line("c", v=3))
    assert on_disk(path) == [line("a", v=value), line("b", v=1), line("c", v=3)]
    assert {p.name for p in tmp_path.iterdir()} == {"a.jsonl", ".a.jsonl.lock"}


def test_killed_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    generator = random.Random(0)

    def work(turn: int) -> None:
        for number in range(10_000):
            JsonlFile(path).put(line(f"{turn}/{number % 20}", v=number, text="x" * 5000))
            (tmp_path / f"done-{turn}").write_text(str(number))

    for turn in range(12):
        process = FORK.Process(target=work, args=(turn,))
        process.start()
        time.sleep(generator.uniform(0.02, 0.15))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        found = {own["key"]: own["v"] for own in JsonlFile(path).read()}
        done = tmp_path / f"done-{turn}"
        if done.exists() and (text := done.read_text()):
            # Whatever put() came back from is there.
            assert max(v for key, v in found.items() if key.startswith(f"{turn}/")) >= int(text)
    assert JsonlFile(path).read()


def test_a_lock_that_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_file, "_TIMEOUT", 0.05)
    path = tmp_path / "a.jsonl"
    with FileLock(tmp_path / ".a.jsonl.lock"):
        with pytest.raises(FileError, match=r"another process has held .*\.a\.jsonl\.lock"):
            JsonlFile(path).put(line("a"))
        assert not path.exists()
    JsonlFile(path).put(line("a"))
    assert on_disk(path) == [line("a")]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = JsonlFile(tmp_path / "a.jsonl")
    lines.put(line("a"))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="the disk is full"):
            lines.put(line("b"))
    assert on_disk(lines.path) == [line("a")]
    lines.put(line("b"))
    assert on_disk(lines.path) == [line("a"), line("b")]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"could not be written"):
        JsonlFile(tmp_path / "file" / "a.jsonl").put(line("a"))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_what_is_no_file_is_named(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "a.jsonl")
    with pytest.raises(FileError, match=r"a\.jsonl"):
        JsonlFile(tmp_path / "a.jsonl").read()
