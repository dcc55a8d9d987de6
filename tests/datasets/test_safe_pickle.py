import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from fognn.datasets.safe_pickle import Call, Dtype, RefusedError, SafeUnpickler, one_sentence
from fognn.utils.errors import FileError


def load(content: bytes, names: dict[str, object]) -> object:
    return SafeUnpickler(io.BytesIO(content), names).load()


def test_only_names_of_the_list() -> None:
    content = pickle.dumps(os.getcwd)
    assert pickle.loads(content) is os.getcwd  # the list is what refuses it below
    with pytest.raises(RefusedError, match=r"^(posix|nt)\.getcwd$"):
        load(content, {"builtins.list": list})
    assert load(content, {f"{os.getcwd.__module__}.getcwd": "stand-in"}) == "stand-in"


def test_a_call_can_be_called_and_not_altered() -> None:
    content = b"cm\nf\n(I4\ntR."
    assert load(content, {"m.f": Call(lambda number: number + 1)}) == 5
    for state in (
        b"}X\x09\x00\x00\x00_functionK\x01sb.",
        b"N}X\x09\x00\x00\x00_functionK\x01s\x86b.",
    ):
        with pytest.raises(TypeError, match="a function has no state"):
            load(b"\x80\x03cm\nf\n" + state, {"m.f": Call(len)})


@pytest.mark.parametrize("name", ["b1", "i1", "u8", "<f4", ">i2", "|u1", "f2"])
def test_dtypes_of_numbers(name: str) -> None:
    dtype = np.dtype(name)
    assert load(pickle.dumps(dtype), {"numpy.dtype": Dtype}).dtype == dtype  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [object, "S3", "U3", "c8", "M8[s]", [("a", "i4")]])
def test_other_dtypes_are_refused(dtype: object) -> None:
    with pytest.raises(RefusedError, match=r"numpy\.dtype\("):
        load(pickle.dumps(np.dtype(dtype)), {"numpy.dtype": Dtype})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RefusedError("os.system"), "x is refused, it names os.system, which no book needs: get"),
        (FileNotFoundError(), "x is not there: name an existing file"),
        (EOFError("cut"), r"x is not a whole book \(EOFError: cut\): get the file again"),
        (RecursionError("deep"), r"not a whole book \(RecursionError: deep\)"),
    ],
)
def test_one_sentence(error: Exception, message: str) -> None:
    with pytest.raises(FileError, match=message), one_sentence(Path("x"), "book"):
        raise error


def test_errors_of_the_program_are_not_hidden() -> None:
    with pytest.raises(KeyboardInterrupt), one_sentence(Path("x"), "book"):
        raise KeyboardInterrupt
