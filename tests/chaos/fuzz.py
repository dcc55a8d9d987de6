"""Fuzzing: seeded random changes of valid files of every format."""

import csv
import io
import json
import pickletools
import random
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.findings import Counts
from chaos.formats import FORMATS, sample
from chaos.trials import Trial, chosen, command_trial, read_trials

__all__ = ["fuzz_trials", "mutate"]

PART = "fuzz"
_BATCH = 50
_NUMBERS = [0, -1, 1, 2**31, -(2**31) - 1, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 10**400]
NASTY: list[Any] = [
    *_NUMBERS,
    *(1e308, -1e308, 1e-320, float("nan"), float("inf"), 0.5, True, False, None),
    *("", "x", "../../etc", "a" * 5000, "\x00", "\ud800", "<script>", "1e400", "ü", "{}"),
    *([], {}, [[]], [None], {"a": 1}, [[[[1]]]], list(range(100))),
]


# Of bytes ----------------------------------------------------------------------------------------
def _flip(rng: random.Random, data: bytearray, bits: int) -> None:
    for _ in range(bits):
        place = rng.randrange(len(data))
        data[place] ^= 1 << rng.randrange(8)


def _block(rng: random.Random, data: bytearray) -> slice:
    first = rng.randrange(len(data))
    return slice(first, min(len(data), first + rng.choice([1, 4, 16, 64, 512, 4096])))


def _zeros(rng: random.Random, data: bytearray) -> None:
    block = _block(rng, data)
    data[block] = bytes(block.stop - block.start)


def _insert(rng: random.Random, data: bytearray) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.randbytes(rng.choice([1, 2, 8, 100]))


def _remove(rng: random.Random, data: bytearray) -> None:
    del data[_block(rng, data)]


def _double(rng: random.Random, data: bytearray) -> None:
    block = _block(rng, data)
    data[block.start : block.start] = data[block]


def _swap(rng: random.Random, data: bytearray) -> None:
    one, other = rng.randrange(len(data)), rng.randrange(len(data))
    data[one], data[other] = data[other], data[one]


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _set(rng: random.Random, data: bytearray) -> None:
    """Writes a number at the limits of its type."""
    number = rng.choice([0, 1, 127, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1])
    size = rng.choice([1, 2, 4, 8])
    place = rng.randrange(len(data))
    data[place : place + size] = (number % 256**size).to_bytes(size, rng.choice(["little", "big"]))
    del data[max(place + size, len(data)) :]


BYTES: dict[str, Callable[[random.Random, bytearray], None]] = {
    "1 bit": lambda rng, data: _flip(rng, data, 1),
    "8 bits": lambda rng, data: _flip(rng, data, 8),
    "64 bits": lambda rng, data: _flip(rng, data, 64),
    "truncated": _truncate,
    "zeros": _zeros,
    "inserted": _insert,
    "removed": _remove,
    "doubled": _double,
    "swapped": _swap,
    "a number": _set,
}


# Of structures -----------------------------------------------------------------------------------
def _zip_member(rng: random.Random, data: bytes) -> bytes:
    """Changes the content of a member, with a right checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(info, file.read(info)) for info in file.infolist()]
    place = rng.randrange(len(members))
    if rng.random() < 0.5:  # the pickle, or a header, rather than one of many arrays of numbers
        names = [i for i, (info, _) in enumerate(members) if info.filename.endswith(".pkl")]
        place = names[0] if names else place
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for number, (info, content) in enumerate(members):
            if number == place:
                content = _inner(rng, info.filename, content)
            new = zipfile.ZipInfo(info.filename)
            new.compress_type = info.compress_type
            file.writestr(new, content)
            if number == place and rng.random() < 0.03:
                file.writestr(new, content)  # twice
    return out.getvalue()


def _inner(rng: random.Random, name: str, content: bytes) -> bytes:
    if name.endswith(".npy") and rng.random() < 0.6:
        return npy_header(rng, content)
    if name.endswith(".pkl") and rng.random() < 0.7:
        return pickle_argument(rng, content)
    return _bytes(rng, content)[1] if content else content


def npy_header(rng: random.Random, data: bytes) -> bytes:
    """Changes a number, or the type, in the header of an array."""
    size = struct.unpack("<H", data[8:10])[0]
    text = data[10 : 10 + size].decode("latin1").rstrip()
    if rng.random() < 0.5:
        types = ["|O", "<i8", "<f2", "<f16", ">u4", "<U5", "|V7", "<c16", "<M8[s]", "|b1", "|S3"]
        text = re.sub(r"'descr': '[^']*'", lambda _: f"'descr': '{rng.choice(types)}'", text)
    else:
        numbers = list(re.finditer(r"\d+", text[text.index("shape") :]))
        new = str(rng.choice([0, -1, 1, 3, 2**20, 2**31, 2**40, 2**62, 2**64, 2**70]))
        if numbers:
            found, start = rng.choice(numbers), text.index("shape")
            text = text[: start + found.start()] + new + text[start + found.end() :]
    text += " " * ((-len(text) - 11) % 64) + "\n"
    return data[:8] + struct.pack("<H", len(text)) + text.encode("latin1") + data[10 + size :]


def pickle_argument(rng: random.Random, data: bytes) -> bytes:
    """Changes the argument of an instruction of a pickle."""
    places = []
    try:
        for code, argument, position in pickletools.genops(data):
            if argument is not None:
                places.append((code, argument, position))
    except Exception:  # not a pickle: bytes are as good
        return _bytes(rng, data)[1]
    if not places:
        return data
    code, argument, position = rng.choice(places)
    changed = bytearray(data)
    if isinstance(argument, str) and rng.random() < 0.7:
        old = argument.encode("utf-8", "replace")[:1]
        place = data.find(old, position)
        if place >= 0:
            changed[place] ^= 1 << rng.randrange(7)
    else:
        begin = position + 1
        size = rng.choice([1, 1, 2, 4])
        changed[begin : begin + size] = rng.randbytes(size)
        if rng.random() < 0.5:
            changed[begin] = rng.choice([0, 1, 2, 127, 128, 255])
    return bytes(changed)


def _json_value(rng: random.Random, data: bytes) -> bytes:
    lines = data.decode().split("\n")
    many = len(lines) > 2 and all(line.startswith("{") for line in lines if line)
    place = rng.randrange(max(1, len([line for line in lines if line]))) if many else 0
    content = json.loads(lines[place] if many else data)
    _change(rng, content)
    text = json.dumps(content)
    return ("\n".join([*lines[:place], text, *lines[place + 1 :]]) if many else text).encode()


def _change(rng: random.Random, content: Any) -> None:
    """Changes, removes, renames or adds one value of nested dicts and lists."""
    places: list[tuple[Any, Any]] = []

    def walk(thing: Any) -> None:
        items = thing.items() if isinstance(thing, dict) else enumerate(thing)
        for key, value in items:
            places.append((thing, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(content)
    holder, key = rng.choice(places)
    what = rng.random()
    if what < 0.7:
        holder[key] = rng.choice(NASTY)
    elif what < 0.85:
        del holder[key]
    elif isinstance(holder, dict):
        holder[rng.choice(["", "x", "\ud800", "key", "__class__", "a" * 300])] = holder.pop(key)
    else:
        holder.insert(key, rng.choice(NASTY))


def _yaml_value(rng: random.Random, data: bytes) -> bytes:
    lines = data.decode().splitlines()
    place = rng.randrange(len(lines))
    nasty = rng.choice(
        [
            *("!!python/object/apply:os.system [id]", "!!python/name:os.system", "&a [*a]", "*x"),
            *("{", "[" * 3000, "'", "2021-99-99", "0x", "1" * 5000, "~", "!!binary x", "!!set {a}"),
            *("!!timestamp 1", "1e999", ".nan", "-.inf", "? [a]", "- - -", "\t", "%", "@", "`"),
            *("!!int x", "!!float x", "!!map 1", "!!str", "{a: 1}", "yes", "[]", "1_000", "1:30"),
            *(str(value) for value in _NUMBERS),
        ]
    )
    if rng.random() < 0.8:
        key = lines[place].partition(":")[0]
        lines[place] = f"{key}: {nasty}"
    elif rng.random() < 0.5:
        del lines[place]
    else:
        lines.insert(place, lines[place].replace(":", f"{rng.choice('abc')}:"))
    return ("\n".join(lines) + "\n").encode()


def _csv_value(rng: random.Random, data: bytes) -> bytes:
    rows = list(csv.reader(io.StringIO(data.decode())))
    row = rng.choice(rows)
    values = [str(value) for value in NASTY if value != "\ud800"]
    values += ['"', "C" * 300, "C1CC", "[Xx]", "((((", "1,2", "\n", "\r", "=1+1", "NaN", "-"]
    what = rng.random()
    if row and what < 0.7:
        row[rng.randrange(len(row))] = rng.choice(values)
    elif row and what < 0.8:
        del row[rng.randrange(len(row))]
    elif what < 0.9:
        row.append(rng.choice(values))
    else:
        rows.insert(rng.randrange(len(rows) + 1), list(row))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _words(rng: random.Random, data: bytes) -> bytes:
    words = list(re.finditer(rb"[^\s,]+", data))
    if not words:
        return data
    found = rng.choice(words)
    new = str(rng.choice([v for v in NASTY if v != "\ud800"])).encode()
    return data[: found.start()] + new + data[found.end() :]


def _structure(name: str) -> tuple[str, Callable[[random.Random, bytes], bytes]] | None:
    if name.endswith((".pt", ".npz", ".ckpt", ".zip")):
        return "member", _zip_member
    if name.endswith((".json", ".jsonl")):
        return "value", _json_value
    if name.endswith(".yaml"):
        return "value", _yaml_value
    if name.endswith(".csv"):
        return "value", _csv_value
    if name.endswith(".txt"):
        return "word", _words
    if name.endswith((".pkl", ".x")):
        return "pickle", pickle_argument
    return None


def _bytes(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    kind = rng.choice(list(BYTES))
    changed = bytearray(data)
    BYTES[kind](rng, changed)
    return kind, bytes(changed)


def mutate(rng: random.Random, name: str, data: bytes) -> tuple[str, bytes]:
    """Changes the content of a file.

    Args:
        rng: The random numbers.
        name: The name of the file, whose ending tells the format.
        data: The content.

    Returns:
        The kind of the change, and the new content.
    """
    structure = _structure(name)
    if structure is not None and rng.random() < 0.4:
        kind, change = structure
        if kind != "member" or zipfile.is_zipfile(io.BytesIO(data)):
            return kind, change(rng, data)
    return _bytes(rng, data)


def _trial(rng: random.Random, name: str, valid: Path) -> Trial:
    kind, content = mutate(rng, valid.name, valid.read_bytes())

    def write(path: Path, canary: Path) -> None:
        path.write_bytes(content)

    return Trial(kind, name, write, exact=kind != "member")


def fuzz_trials(
    counts: Counts, folder: Path, seed: int, files: int, formats: list[str] | None = None
) -> None:
    """Reads changed files of all formats; every tenth one with a command, too.

    Args:
        counts: Gets the outcomes.
        folder: A folder for the samples.
        seed: The seed of all changes.
        files: Number of files.
        formats: Names of formats. All by default.
    """
    names = formats or list(FORMATS)
    valid = {name: sample(FORMATS[name], folder / "valid" / f"{i}") for i, name in enumerate(names)}
    made = 0
    while made < files:
        name = names[made // _BATCH % len(names)]
        rng = random.Random(f"{seed} {made}")
        trials = [_trial(rng, name, valid[name]) for _ in range(min(_BATCH, files - made))]
        made += len(trials)
        read_trials(counts, PART, trials, folder / "trial")
        for trial in trials[::10]:
            command = chosen(rng, FORMATS[name])
            if command is not None:
                command_trial(counts, f"{PART}, commands", trial, command, folder / "trial")
