"""No file is read in a way that could run code, outside fognn.utils."""

import re
from pathlib import Path

import pytest

import fognn

PACKAGE = Path(fognn.__file__).parent
UNSAFE = re.compile(
    r"\b(?:torch|fs|pickle|dill|joblib|cloudpickle)\.(?:load|loads|torch_load)\("
    r"|\bfrom (?:pickle|torch|torch_geometric\.io\.fs) import .*\b(?:load|loads|torch_load)\b"
    r"|\bpickle\.Unpickler\(|\btorch_load\("
    r"|allow_pickle\s*=\s*True"
    # np.load without the argument is safe today; it must be written down all the same.
    r"|\bnp\.load\((?![^)]*allow_pickle=False)"
    r"|\byaml\.(?:load|load_all|full_load|unsafe_load|Loader|UnsafeLoader|FullLoader)\b"
    r"|\bread_pickle\(|\b(?:marshal|shelve)\.|(?<![\w.])(?:eval|exec)\("
    r"|\bshell\s*=\s*True|\bos\.(?:system|popen)\("
)
FILES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "utils"
]


def unsafe(text: str) -> list[str]:
    # In docstrings the names may stand: between backquotes they are no call.
    return [found.group() for found in UNSAFE.finditer(re.sub(r"``[^`]*``|:\w+:`[^`]*`", "", text))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_loaded_safely(path: Path) -> None:
    assert unsafe(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path)",
        "torch.load(path, weights_only=True)",
        "fs.torch_load(path)",
        "from torch_geometric.io.fs import torch_load",
        "pickle.load(file)",
        "pickle.loads(content)",
        "from pickle import load, dump",
        "pickle.Unpickler(file).load()",
        "np.load(path, allow_pickle=True)",
        "np.load(path)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "pd.read_pickle(path)",
        "eval(text)",
        "exec(code, {})",
        "marshal.loads(data)",
        "subprocess.run(line, shell=True)",
        "os.system(line)",
    ],
)
def test_unsafe_loading_is_seen(line: str) -> None:
    assert unsafe(f"x = 1\n    {line}\n")


def test_safe_loading_is_not_taken_for_unsafe() -> None:
    assert not unsafe("np.load(path, allow_pickle=False)\nload_torch(path)\n``torch.load(path)``")
    assert not unsafe("yaml.safe_load(text)\nmodel.eval()\nself.exec(x)\nliteral_eval(text)")
