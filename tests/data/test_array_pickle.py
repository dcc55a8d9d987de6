import codecs
import io
import os
import pickle
from collections import OrderedDict, defaultdict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.data.array_pickle import load_arrays
from fognn.utils.errors import FileError


def write(path, content, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_of_every_protocol(tmp_path, protocol):
    groups = defaultdict(list)
    groups["n01"] += [0, 1, np.int64(2)]
    groups["n02"] = range(3, 5)
    groups["n03"] = np.arange(5, 7, dtype=">i4")
    content = OrderedDict(
        image_data=np.arange(7 * 4 * 4 * 3, dtype=np.uint8).reshape(7, 4, 4, 3),
        turned=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        class_dict=dict(groups),
        default=groups,
        note=None,
    )
    out = load_arrays(write(tmp_path / "a.pkl", content, protocol))
    np.testing.assert_array_equal(out["image_data"], content["image_data"])
    np.testing.assert_array_equal(out["turned"], content["turned"])
    for kind in ("class_dict", "default"):
        assert out[kind]["n01"] == [0, 1, 2]
        assert out[kind]["n02"] == [3, 4]
        assert out[kind]["n03"].tolist() == [5, 6]
    assert out["note"] is None


def test_file_of_python_2(tmp_path):
    # What Python 2.7 with numpy 1.16 writes for {"a": numpy.array([1, 200], "u1")}, protocol 2.
    content = (
        b"\x80\x02}q\x01U\x01aq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02\x85cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87R"
        b"q\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x01\xc8tbs."
    )
    (tmp_path / "a.pkl").write_bytes(content)
    assert load_arrays(tmp_path / "a.pkl")["a"].tolist() == [1, 200]


class Hostile:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (os.system, ("touch hacked",), "system"),
        (eval, ("open('hacked', 'w')",), "builtins.eval|__builtin__.eval"),
        (getattr, ("text", "encode"), "getattr"),
        (np.load, ("x",), "numpy"),
        (np.dtype, ("O",), r"numpy.dtype\('O'\)"),
        (codecs.encode, ("hacked", "rot13"), r"_codecs.encode\(..., 'rot13'\)"),
    ],
)
def test_hostile_pickle_is_not_read(tmp_path, monkeypatch, protocol, function, args, name):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a.pkl", {"image_data": Hostile(function, *args)}, protocol)
    with pytest.raises(FileError, match=f"is not read, it names .*({name})"):
        load_arrays(path)
    assert not (tmp_path / "hacked").exists()


def test_array_of_objects_is_not_read(tmp_path):
    path = write(tmp_path / "a.pkl", np.array([Hostile(os.system, "touch hacked")], dtype=object))
    with pytest.raises(FileError, match="is not read"):
        load_arrays(path)


def array(state: str) -> bytes:
    """A pickle of an array of bytes whose shape, order and content are written in opcodes."""
    shape, _, rest = state.partition("tI00")
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR(I1\n"
        + f"{shape}tcnumpy\ndtype\n(Vu1\ntRI00{rest}tb.".encode("latin1")
    )


def test_array_in_opcodes(tmp_path):
    (tmp_path / "a.pkl").write_bytes(array("(I3\ntI00\nC\x03abc"))
    assert load_arrays(tmp_path / "a.pkl").tolist() == [97, 98, 99]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        # A stand-in for a function must not take a state.
        b"cnumpy.core.multiarray\n_reconstruct\n}b.",
        # An array without content, and a class in the place of a value.
        b"cnumpy\nndarray\n)\x81.",
        b"cnumpy\nndarray\n.",
        b"cnumpy\nndarray\n(dX\x05\x00\x00\x00arrayK\x01sb.",
        # bytes(10 ** 9) would fill the memory.
        b"cbuiltins\nbytes\n(I1000000000\ntR.",
        # Arrays of three bytes with other shapes, orders and contents.
        array("(I1\nI2\ntI00\nC\x03abc"),
        array("(I-1\nI-3\ntI00\nC\x03abc"),
        array("(I3\ntI00\nI7\n"),
        b"cnumpy.core.numeric\n_frombuffer\n(C\x03abccnumpy\ndtype\n(Vu1\ntR(I3\ntVX\ntR.",
        b"cnumpy\ndtype\n(Vu1\ntR(I3\nV!\nNNNI-1\nI-1\nI0\ntb.",
    ],
)
def test_broken_file(tmp_path, content):
    (tmp_path / "a.pkl").write_bytes(content)
    with pytest.raises(FileError, match="not a whole pickle of arrays"):
        load_arrays(tmp_path / "a.pkl")


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match="is not there"):
        load_arrays(tmp_path / "a.pkl")


GOOD = pickle.dumps({"a": np.arange(40, dtype=np.uint8), "b": list(range(9))}, protocol=2)


@given(cut=st.integers(0, len(GOOD) - 1))
def test_truncated_anywhere(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "a.pkl"
    path.write_bytes(GOOD[:cut])
    with pytest.raises(FileError):
        load_arrays(path)


@given(place=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255))
def test_altered_anywhere(tmp_path_factory, place, byte):
    content = bytearray(GOOD)
    content[place] = byte
    path = tmp_path_factory.mktemp("altered") / "a.pkl"
    path.write_bytes(content)
    # It may still be a good pickle, of something else; any other error than ours fails the test.
    with suppress(FileError):
        load_arrays(path)


def test_raw_bytes(tmp_path):
    content = {"a": b"abc", "b": bytearray(b"abc")}
    for protocol in (2, 4):
        out = load_arrays(write(tmp_path / "a.pkl", content, protocol))
        assert out == {"a": b"abc", "b": b"abc"}


def test_huge_range(tmp_path):
    buffer = io.BytesIO()
    pickle.dump(range(10**12), buffer)
    (tmp_path / "a.pkl").write_bytes(buffer.getvalue())
    with pytest.raises(FileError, match="a range has 1000000000000 numbers"):
        load_arrays(tmp_path / "a.pkl")


def test_lists_that_repeat_themselves(tmp_path):
    doubled = [0]
    for _ in range(60):
        doubled = [doubled, doubled]
    out = load_arrays(write(tmp_path / "a.pkl", doubled))
    for _ in range(60):
        assert out[0] is out[1]
        out = out[0]
    endless: list = []
    endless.append(endless)
    with pytest.raises(FileError, match="RecursionError"):
        load_arrays(write(tmp_path / "b.pkl", endless))


@pytest.mark.parametrize("name", ["b1", "i1", "u8", "<f4", ">i2", "|u1", "f2"])
def test_dtypes_of_numbers(tmp_path, name):
    array = np.array([0, 1], dtype=name)
    out = load_arrays(write(tmp_path / "a.pkl", array))
    assert out.dtype == array.dtype
    assert out.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [object, "S3", "U3", "c8", "M8[s]", [("a", "i4")]])
def test_other_dtypes_are_not_read(tmp_path, dtype):
    with pytest.raises(FileError, match=r"is not read, it names numpy\.dtype\("):
        load_arrays(write(tmp_path / "a.pkl", np.zeros(2, dtype)))


@pytest.mark.parametrize(
    "state",
    [b"}X\x09\x00\x00\x00_functionK\x01sb.", b"N}X\x09\x00\x00\x00_functionK\x01s\x86b."],
)
def test_a_stand_in_cannot_be_changed(tmp_path, state):
    (tmp_path / "a.pkl").write_bytes(b"\x80\x03cbuiltins\nlist\n" + state)
    with pytest.raises(FileError, match="a function has no state"):
        load_arrays(tmp_path / "a.pkl")


def test_an_interrupt_is_not_hidden(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fognn.data.array_pickle._plain", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_arrays(write(tmp_path / "a.pkl", [1]))


def test_a_place_far_beyond_the_file(tmp_path):
    # Python's unpickler would make a list of 2**31 places, of 16 GiB.
    for content in (b"\x80\x04]r\xff\xff\xff\x7f.", b"]p2147483647\n.", b"]p-1\n."):
        (tmp_path / "a.pkl").write_bytes(content)
        with pytest.raises(FileError, match=r"a\.pkl is not a whole pickle of arrays \(ValueError"):
            load_arrays(tmp_path / "a.pkl")


@pytest.mark.parametrize("kind", ["arrays", "ranges", "bytes", "lists"])
def test_content_that_grows(tmp_path, kind):
    size = 2**22
    raw = b"B" + size.to_bytes(4, "little") + bytes(size)  # memoised, and used a hundred times
    header = b"\x80\x03" + raw + b"q\x000]q\x01("
    if kind == "arrays":
        dtype = b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x85R"
        one = b"cnumpy.core.numeric\n_frombuffer\nh\x00" + dtype
        one += b"J" + size.to_bytes(4, "little") + b"\x85X\x01\x00\x00\x00C" + b"tR"
        one = one.replace(b"_frombuffer\n", b"_frombuffer\n(", 1)
    elif kind == "ranges":
        one = b"cbuiltins\nrange\nJ" + (2**21).to_bytes(4, "little") + b"\x85R"
    elif kind == "bytes":
        one = b"cbuiltins\nbytes\nh\x00\x85R"
    else:
        one = b"cbuiltins\nlist\nh\x00\x85R"
    (tmp_path / "a.pkl").write_bytes(header + one * 100 + b"e.")
    with pytest.raises(FileError, match="its content is more than 8 times as large as the file"):
        load_arrays(tmp_path / "a.pkl")
    (tmp_path / "a.pkl").write_bytes(header + one + b"e.")
    load_arrays(tmp_path / "a.pkl")


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "a.pkl")
    with pytest.raises(FileError, match=r"a\.pkl must be a regular file, it is a pipe"):
        load_arrays(tmp_path / "a.pkl")
