"""Hostile and broken files of text: csv, YAML, JSON, ledgers, and lists of numbers."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from chaos.trials import Trial

__all__ = ["text_kinds"]

Write = Callable[[Path, Path], None]
_HUGE = "9" * 5000
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join([f'*{o}'] * 9)}]\n" for o, n in zip("abcdefgh", "bcdefghi", strict=True)
)


def _text(text: str | bytes) -> Write:
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return lambda path, canary: path.write_bytes(content) and None


def _changed(change: Callable[[str], str | bytes]) -> Write:
    def write(path: Path, canary: Path) -> None:
        new = change(path.read_text())
        path.write_bytes(new.encode("utf-8", "surrogatepass") if isinstance(new, str) else new)

    return write


_ENCODINGS: dict[str, Callable[[str], str | bytes]] = {
    "byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "Latin-1": lambda text: (text + "é").encode("latin1"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "no newline at its end": lambda text: text.rstrip("\n"),
    "NUL": lambda text: text[: len(text) // 2] + "\0" + text[len(text) // 2 :],
    "surrogate": lambda text: text[: len(text) // 2] + "\ud800" + text[len(text) // 2 :],
    "half a character": lambda text: text.encode() + b"\xe2\x82",
    "control characters": lambda text: text.replace(",", ",\x1b[2J\x07", 1),
    "a line of 10 MB": lambda text: text + "x" * 10_000_000,
    "twice": lambda text: text + text,
    "half of it": lambda text: text[: len(text) // 2],
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "other line ends": lambda text: text.replace("\n", "\u2028"),
    "form feeds": lambda text: text.replace("\n", "\x0c"),
}
_TEXTS = ("molecules.csv", "--config", "run/config.yaml", "run/result.json", "run/metrics.csv")
_TEXTS += ("zinc.jsonl", "runs.jsonl", "searches/zinc.jsonl", "compare/own.jsonl", "zinc12k.csv")
_TEXTS += ("IMDBMULTI.txt", "10fold_idx", "TU A", "TU graph_indicator", "TU graph_labels")
_TEXTS += ("mini-imagenet.csv", "net/config.json", "pyg TUDataset A", "pyg MoleculeNet")

_ROWS = "".join(f"{'C' * (n % 9 + 1)},{n},{n % 2},{'ab'[n % 2]}\n" for n in range(3000))
_HEAD = "smiles,value,active,kind\n"


def _smiles(smiles: str, value: str = "1.5") -> str:
    own = '"' + smiles.replace('"', '""') + '"'
    return f"{_HEAD}{'CCO,1,0,a' + chr(10)}{'CCN,2,1,b' + chr(10)}{own},{value},1,a\n"


_CSV = {
    "3,000 rows": _HEAD + _ROWS,
    "a SMILES of 130,000 characters": _smiles("C" * 130_000),
    "a SMILES of 900 rings": _smiles("C1CC1" * 900),
    "a SMILES of open brackets": _smiles("C(" * 3000),
    "a SMILES of deep branches": _smiles("C(" * 900 + "C" + ")" * 900),
    "a SMILES of an unknown atom": _smiles("[Xx]"),
    "a SMILES of a wrong valence": _smiles("C(C)(C)(C)(C)C"),
    "a SMILES of a ring that is open": _smiles("C1CC"),
    "a SMILES of a huge isotope": _smiles("[99999999999C]"),
    "a SMILES of a huge charge": _smiles("[C+99999]"),
    "a SMILES of an atom map": _smiles("[C:4294967296]"),
    "a SMILES of nothing": _smiles(""),
    "a SMILES of blanks": _smiles("   "),
    "a SMILES of a wildcard": _smiles("*"),
    "a SMILES of a reaction": _smiles("CC>>CO"),
    "a SMILES of dots": _smiles("." * 1000),
    "a SMILES of Unicode": _smiles("Ｃ\u202e"),
    "a SMILES of a script": _smiles("<script>alert(1)</script>"),
    "a SMILES of NUL": _smiles("C\0C"),
    "a SMILES of a newline": _smiles("C\nC"),
    "a SMILES of an extension": _smiles("CC |$;;$|"),
    "a value of nan": _smiles("C", "nan"),
    "a value of inf": _smiles("C", "inf"),
    "a value of 1e400": _smiles("C", "1e400"),
    "a value of 1e38": _smiles("C", "3.4e38"),
    "a value of 2**70": _smiles("C", str(2**70)),
    "a value of 5,000 digits": _smiles("C", _HUGE),
    "a value of hexadecimal digits": _smiles("C", "0x10"),
    "a value of Arabic digits": _smiles("C", "٣"),
    "a value of a formula": _smiles("C", "=1+1"),
    "a value of underscores": _smiles("C", "1_0"),
    "100,000 columns": ",".join(f"c{n}" for n in range(100_000)) + "\nC\n",
    "100,000 cells": _HEAD + "C" + ",1" * 100_000 + "\n",
    "a header alone": _HEAD,
    "no header": "CCO,1\nCC,2\n",
    "commas alone": ",,,\n,,,\n",
    "a header twice": "smiles,smiles,value,value\nC,C,1,2\n",
    "a header of blanks": " smiles , value ,active,kind\nC,1,1,a\n",
    "a header of scripts": "smiles,value,<script>,\x1b\nC,1,1,a\n",
    "a quote that is open": _HEAD + 'C,"1\n' + _ROWS,
    "a quote within a cell": _HEAD + 'C"C,1"2,0,a\n',
    "newlines in quotes": _HEAD + '"C\n\n\n",1,0,a\n' * 100,
    "semicolons": _HEAD.replace(",", ";") + _ROWS[:300].replace(",", ";"),
    "tabs": _HEAD.replace(",", "\t") + _ROWS[:300].replace(",", "\t"),
    "a cell of 200,000 characters": _HEAD + "C,1,0," + "a" * 200_000 + "\n",
    "a class for each row": _HEAD + "".join(f"C,1,0,k{n}\n" for n in range(50)),
    "one class": _HEAD + "C,1,0,a\n" * 50,
    "one value": _HEAD + "C,1,1,a\n" * 50,
    "values that are missing": _HEAD + "C,,,\n" * 50,
    "rows that are short": _HEAD + "C\n" * 50,
}
_YAML = {
    "an anchor bomb": _BOMB,
    "an anchor bomb in a setting": f"{_BOMB}data: {{name: *i}}\n",
    "an anchor bomb in the model": _BOMB + "model: {name: gcn, settings: *i}\n",
    "an anchor that is in itself": "&a [*a]",
    "a mapping that is in itself": "data: &a {name: *a}",
    "merged keys": "<<: {a: 1}\n<<: {b: 2}",
    "10,000 levels of lists": "[" * 10_000 + "]" * 10_000,
    "10,000 levels of mappings": "{a: " * 10_000,
    "10,000 levels of dashes": "- " * 10_000,
    "a list": "[1, 2]",
    "a number": "3",
    "a text": "text",
    "null": "~",
    "keys that are numbers": "1: 2",
    "keys that are lists": "? [a]\n: 1",
    "a key twice": "seed: 1\nseed: 2",
    "a date": "seed: 2021-99-99",
    "a number of 5,000 digits": f"seed: {_HUGE}",
    "a hexadecimal number of 5,000 digits": f"seed: 0x{_HUGE}",
    "sexagesimal": "seed: 190:20:30",
    "octal": "seed: 0o17",
    "binary": "seed: !!binary not base64",
    "an unknown tag": "!own {a: 1}",
    "two documents": "a: 1\n---\nb: 2",
    "a directive": "%YAML 9.9\n---\na: 1",
    "a tab": "a:\n\tb: 1",
    "100,000 keys": "".join(f"k{n}: 1\n" for n in range(100_000)),
    "a text of 2 MB": "a: " + "x" * 2_000_000,
    "control characters": "a: \x07",
    "a folded text": "a: >\n " + "x\n " * 5000,
}
_JSON = {
    "100,000 levels of lists": "[" * 100_000 + "]" * 100_000,
    "100,000 levels of objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "900 levels": "[" * 900 + "]" * 900,
    "a list": "[]",
    "an object without keys": "{}",
    "a number": "7",
    "a text": '"text"',
    "null": "null",
    "NaN": "NaN",
    "an integer of 5,000 digits": f'{{"key": {_HUGE}}}',
    "a number of 1e999": '{"key": 1e999}',
    "a surrogate": '{"key": "\\ud800"}',
    "an escape that is open": '{"key": "\\u12',
    "a comma at the end": '{"key": 1,}',
    "single quotes": "{'key': 1}",
    "comments": '{"key": 1} // comment',
    "two objects": '{"key": "a"} {"key": "b"}',
    "100,000 keys": json.dumps({f"k{n}": n for n in range(100_000)}),
    "a text of 10 MB": json.dumps({"key": "x" * 10_000_000}),
}
_VALUES: list[Any] = [
    *(None, True, 0, -1, 2**40, 2**62, 2**63, 2**200, 10**4000, 0.5, 1e308, -1e308),
    *("", "text", "<script>", "\x00", "../..", "\ud800", "nan"),
    *([], {}, [[]], [None], {"a": {}}, [1e308, -1e308], [2**70]),
]


def _json_value(place: int, value: Any) -> Write:
    """Changes one value of a JSON file, or of its second line; ``...`` removes it."""

    def write(path: Path, canary: Path) -> None:
        lines = path.read_text().rstrip("\n").split("\n")
        many = path.suffix == ".jsonl"
        number = min(1, len(lines) - 1) if many else 0
        content = json.loads(lines[number] if many else path.read_text())
        holder, key = _places(content)[place % len(_places(content))]
        if value is ...:
            del holder[key]
        else:
            holder[key] = value
        if many:
            lines[number] = json.dumps(content)
        path.write_text("\n".join(lines) + "\n" if many else json.dumps(content))

    return write


def _places(content: Any) -> list[tuple[Any, Any]]:
    found = []
    items = list(content.items() if isinstance(content, dict) else enumerate(content))
    for key, value in items:
        found.append((content, key))
        if isinstance(value, dict | list):
            found += _places(value)
    return found


def _yaml_value(place: int, value: Any) -> Write:
    def write(path: Path, canary: Path) -> None:
        content = yaml.safe_load(path.read_text())
        holder, key = _places(content)[place % len(_places(content))]
        if value is ...:
            del holder[key]
        else:
            holder[key] = value
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    return write


_METRICS: dict[str, Callable[[str], str]] = {
    "no rows": lambda text: text.split("\n")[0] + "\n",
    "a row twice": lambda text: text + text.split("\n")[1] + "\n",
    "a column less": lambda text: "\n".join(line.partition(",")[2] for line in text.split("\n")),
    "a column of another name": lambda text: text.replace("val_loss", "val_lost"),
    "a cell less": lambda text: text.rstrip("\n").rpartition(",")[0] + "\n",
    "a cell more": lambda text: text.rstrip("\n") + ",1\n",
    "nan": lambda text: _cell(text, "nan"),
    "inf": lambda text: _cell(text, "inf"),
    "1e308": lambda text: _cell(text, "1e308"),
    "a text": lambda text: _cell(text, "text"),
    "5,000 digits": lambda text: _cell(text, _HUGE),
    "epoch 2**70": lambda text: text.replace("\n1,", f"\n{2**70},"),
    "epoch -1": lambda text: text.replace("\n1,", "\n-1,"),
    "epoch 1.5": lambda text: text.replace("\n1,", "\n1.5,"),
    "a cell of 200,000 characters": lambda text: _cell(text, "1" * 200_000),
    "a quote that is open": lambda text: text.replace("\n1,", '\n"1,'),
}


def _cell(text: str, value: str) -> str:
    head, _, last = text.rstrip("\n").rpartition("\n")
    return f"{head}\n{last.rpartition(',')[0]},{value}\n"


_NUMBERS = {
    "10**12": "1000000000000\n",
    "2**62": f"{2**62}\n",
    "2**70": f"{2**70}\n",
    "5,000 digits": _HUGE + "\n",
    "-1": "-1\n",
    "-1 in the middle": "1\n-1\n1\n",
    "1.5": "1.5\n",
    "a comma": "1,\n",
    "many columns": "1, 2, 3, 4\n",
    "10**9, 10**9": "1000000000, 1000000000\n",
    "100,000 lines": "1\n" * 100_000,
    "one line of 100,000 numbers": "1 " * 100_000 + "\n",
    "Arabic digits": "٣\n",
    "0": "0\n",
    "nan": "nan\n",
}
_IMDB = {
    "10**12 graphs": "1000000000000\n3 0\n",
    "10**9 nodes": "1\n1000000000 0\n0 0\n",
    "class 3": "1\n1 3\n0 0\n",
    "a degree of 10**9": "1\n1 0\n0 1000000000\n",
    "a neighbour -1": "1\n2 0\n0 1 -1\n0 1 0\n",
    "a neighbour 2**62": f"1\n2 0\n0 1 {2**62}\n0 1 0\n",
    "an edge in one direction": "1\n2 0\n0 1 1\n0 0\n",
    "itself as a neighbour": "1\n1 0\n0 1 0\n",
    "more graphs than it says": "1\n1 0\n0 0\n1 0\n0 0\n",
    "100,000 nodes without edges": "1\n100000 0\n" + "0 0\n" * 100_000,
}
_TABLE = {
    "a path": "filename,label\n../../../etc/passwd,n0\n",
    "an absolute path": "filename,label\n/etc/passwd,n0\n",
    "a backslash": "filename,label\n..\\x.jpg,n0\n",
    "the folder": "filename,label\n.,n0\n",
    "an image that is missing": "filename,label\nno.jpg,n0\n",
    "an image twice": "filename,label\n" + "n00000.jpg,n0\n" * 5,
    "a label of scripts": "filename,label\nn00000.jpg,<script>\n",
    "no rows": "filename,label\n",
    "another header": "label,filename\nn0,n00000.jpg\n",
    "three columns": "filename,label\nn00000.jpg,n0,1\n",
    "a name of 5,000 characters": f"filename,label\n{'x' * 5000}.jpg,n0\n",
    "a NUL in a name": "filename,label\nn0\0.jpg,n0\n",
    "a quote that is open": 'filename,label\n"n00000.jpg,n0\n',
    "a cell of 200,000 characters": f"filename,label\n{'x' * 200_000},n0\n",
}
_NETS: dict[str, dict[str, Any]] = {
    **{
        f"{key} of {value}": {key: json.loads(value)}
        for key in ("channels", "layers", "h1", "fog_channels", "name", "task")
        for value in ("4611686018427387904", "-1", "0", "1e30", "null", '"x"', "[]", "1.5", "{}")
    },
    "an unknown setting": {"__class__": "x"},
    "a setting of a host": {"heads": 2**40},
    "channels of 1,000": {"channels": 1000},
}


def text_kinds() -> Iterator[Trial]:
    """All kinds of this file."""
    for format_ in _TEXTS:
        for kind, change in _ENCODINGS.items():
            yield Trial(kind, format_, _changed(change), False)
    for kind, text in _CSV.items():
        yield Trial(kind, "molecules.csv", _text(text), False)
        if kind.startswith("a SMILES"):
            yield Trial(kind, "zinc12k.csv", _text(text.replace("value", "y")), False)
    for format_ in ("--config", "run/config.yaml"):
        for kind, text in _YAML.items():
            yield Trial(kind, format_, _text(text), False)
        for place in range(0, 45):
            value = [..., *_VALUES][(5 * place) % (len(_VALUES) + 1)]
            if value not in ("\ud800", 10**4000):
                kind = f"value {place}: {str(value)[:20]!r}"
                yield Trial(kind, format_, _yaml_value(place, value), False)
    for format_ in ("run/result.json", "net/config.json", "zinc.jsonl", "searches/zinc.jsonl"):
        for kind, text in _JSON.items():
            yield Trial(kind, format_, _text(text), False)
    jsons = ("zinc.jsonl", "runs.jsonl", "searches/zinc.jsonl", "compare/own.jsonl")
    for format_ in (*jsons, "run/result.json"):
        for place in range(0, 90, 2):
            value = [..., *_VALUES][(7 * place) % (len(_VALUES) + 1)]
            kind = f"value {place}: {'missing' if value is ... else str(value)[:20]!r}"
            yield Trial(kind, format_, _json_value(place, value), False)
    for kind, change in _METRICS.items():
        yield Trial(kind, "run/metrics.csv", _changed(change), False)
    for format_ in ("TU A", "TU graph_indicator", "TU graph_labels", "10fold_idx"):
        for kind, text in _NUMBERS.items():
            yield Trial(kind, format_, _text(text), False)
    for part in ("A", "graph_indicator", "graph_labels", "node_labels"):
        for kind, text in _NUMBERS.items():
            yield Trial(kind, f"pyg TUDataset {part}", _text(text), False)
    for kind, text in _IMDB.items():
        yield Trial(kind, "IMDBMULTI.txt", _text(text), False)
    for kind, text in _TABLE.items():
        yield Trial(kind, "mini-imagenet.csv", _text(text), False)
        zipped = gzip.compress(text.encode(), mtime=0)
        yield Trial(kind, "mini-imagenet.csv.gz", _text(zipped), False)
    yield Trial("a bomb of 300 MB", "mini-imagenet.csv.gz", _bomb, False)
    for kind, values in _NETS.items():
        yield Trial(kind, "net/config.json", _net(values), False)


def _bomb(path: Path, canary: Path) -> None:
    content = b"filename,label\n" + bytes(300_000_000)
    path.write_bytes(gzip.compress(content, 1, mtime=0))


def _net(values: dict[str, Any]) -> Write:
    def write(path: Path, canary: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return write
