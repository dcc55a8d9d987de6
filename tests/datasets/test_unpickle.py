import builtins
import functools
import io
import os
import pickle
import sys
import types
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fognn.datasets.unpickle import OfficialGraph, load_official
from fognn.utils.errors import FileError

# Classes with the names, the attributes and the pickled states of dgl 0.4.2 and 0.5.2 and of the
# benchmark's datasets. They are written here from what those projects document of themselves;
# pickle, torch and numpy write the bytes.


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Scheme(namedtuple("Scheme", ["shape", "dtype"])):
    def __reduce__(self) -> Any:
        return self._reconstruct_scheme, (self.shape, str(self.dtype)[6:])

    @classmethod
    def _reconstruct_scheme(cls, shape: Any, dtype: str) -> "Scheme":
        raise AssertionError("must never run")


class Index(Plain):
    def __getstate__(self) -> Any:
        return self.__dict__["data"]


class GraphIndex(Plain):
    def __getstate__(self) -> Any:
        nodes, src, dst = self.__dict__["data"]
        return nodes, False, False, Index(data=src), Index(data=dst)


def _new_object(cls: Any) -> Any:
    raise AssertionError("must never run")


class HeteroPickleStates(Plain):
    def __reduce__(self) -> Any:
        return _new_object, (type(self),), (1, bytearray(b"meta"), self.__dict__["arrays"])


class HeteroGraphIndex(Plain):
    def __reduce__(self) -> Any:
        return _new_object, (type(self),), HeteroPickleStates(arrays=self.__dict__["arrays"])


def zero_initializer(*args: Any) -> Any:
    raise AssertionError("must never run")


class DotDict(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        self.update(items)
        self.__dict__ = self


class FrameRef(Plain): ...


class Frame(Plain): ...


class Column(Plain): ...


class DGLGraph(Plain): ...


class DGLHeteroGraph(Plain): ...


class load_SBMsDataSetDGL(Plain): ...  # noqa: N801


class MoleculeDGL(Plain): ...


class TSP(Plain): ...


NAMES = {
    "dgl.frame": [Scheme, FrameRef, Frame, Column],
    "dgl.utils": [Index],
    "dgl.init": [zero_initializer],
    "dgl.graph": [DGLGraph],
    "dgl.graph_index": [GraphIndex],
    "dgl.heterograph": [DGLHeteroGraph],
    "dgl.heterograph_index": [HeteroGraphIndex, HeteroPickleStates],
    "dgl._ffi.object": [_new_object],
    "data.SBMs": [load_SBMsDataSetDGL],
    "data.molecules": [MoleculeDGL],
    "data.TSP": [TSP],
    "__main__": [DotDict],
}


def dumps(thing: Any, protocol: int = 3) -> bytes:
    """Pickles while the classes pretend to live where the official ones do."""
    with pytest.MonkeyPatch.context() as patch:
        for module, members in NAMES.items():
            for depth in range(module.count(".") + 1):
                parent = module.rsplit(".", depth)[0]
                if parent not in sys.modules:
                    patch.setitem(sys.modules, parent, types.ModuleType(parent))
            for member in members:
                patch.setattr(member, "__module__", module)
                patch.setattr(sys.modules[module], member.__name__, member, raising=False)
        return pickle.dumps(thing, protocol)


def save(path: Path, thing: Any, protocol: int = 3) -> Path:
    path.write_bytes(dumps(thing, protocol))
    return path


def columns(values: dict[str, Tensor], key: str) -> dict[str, Column]:
    more = {} if key == "data" else {"index": None, "device": None}
    return {
        name: Column(**{key: value, "scheme": Scheme(tuple(value.shape[1:]), value.dtype)}, **more)
        for name, value in values.items()
    }


def frame(values: dict[str, Tensor], rows: int, key: str) -> Frame:
    return Frame(
        _columns=columns(values, key),
        _num_rows=rows,
        _initializers={},
        _default_initializer=zero_initializer,
    )


def old(graph: OfficialGraph, nodes: int) -> DGLGraph:
    """The graph as dgl 0.4.2 pickles it."""

    def reference(values: dict[str, Tensor], rows: int) -> FrameRef:
        return FrameRef(_frame=frame(values, rows, "data"), _index=Index(data=slice(0, rows)))

    edges = graph.src.numel()
    return DGLGraph(
        _graph=GraphIndex(data=(nodes, graph.src, graph.dst)),
        _node_frame=reference(graph.ndata, nodes),
        _edge_frame=reference(graph.edata, edges),
        _msg_index=None,
        _msg_frame=reference({}, edges),
        _message_func=None,
    )


def new(graph: OfficialGraph, nodes: int, arrays: list[Tensor] | None = None) -> DGLHeteroGraph:
    """The graph as dgl 0.5.2 pickles it."""
    return DGLHeteroGraph(
        _graph=HeteroGraphIndex(arrays=arrays or [graph.src, graph.dst]),
        _canonical_etypes=[("_N", "_E", "_N")],
        _batch_num_nodes=None,
        _ntypes=["_N"],
        _node_frames=[frame(graph.ndata, nodes, "storage")],
        _edge_frames=[frame(graph.edata, graph.src.numel(), "storage")],
    )


def csr(graph: OfficialGraph, nodes: int) -> DGLHeteroGraph:
    """The same with the edges in CSR, which keeps their first order as edge ids."""
    edge_ids = graph.src.argsort(stable=True)
    indptr = torch.cat([torch.zeros(1), graph.src.bincount(minlength=nodes).cumsum(0)]).long()
    return new(graph, nodes, [indptr, graph.dst[edge_ids], edge_ids])


def random_graph(seed: int, labels: Any) -> OfficialGraph:
    nodes, edges = 5, 12
    g = torch.Generator().manual_seed(seed)
    return OfficialGraph(
        torch.randint(nodes, (edges,), generator=g),
        torch.randint(nodes, (edges,), generator=g),
        {"feat": torch.randint(28, (nodes,), generator=g)},
        {"feat": torch.rand(edges, 1, generator=g)},
        labels,
    )


def assert_equal(got: OfficialGraph, expected: OfficialGraph) -> None:
    for name in ("src", "dst"):
        assert getattr(got, name).dtype == torch.int64
        assert torch.equal(getattr(got, name), getattr(expected, name))
    for name in ("ndata", "edata"):
        mine, theirs = getattr(got, name), getattr(expected, name)
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in theirs)
        assert all(mine[key].dtype == theirs[key].dtype for key in theirs)
    assert torch.equal(got.labels, torch.as_tensor(expected.labels))


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("layout", [old, new, csr])
@pytest.mark.parametrize("kind", ["sbm", "zinc", "tsp"])
def test_load_official(tmp_path: Path, layout: Any, kind: str, protocol: int) -> None:
    expected, content = {}, []
    for number, split in enumerate(("train", "val", "test")):
        labels: dict[str, Any] = {
            "sbm": torch.tensor([0, 1, 0, 1, 1], dtype=torch.int16),
            "zinc": torch.tensor([0.5 + number]),
            "tsp": [0, 1] * 6,
        }
        graphs = [random_graph(10 * number + i, labels[kind]) for i in range(3 - number)]
        lists = [layout(graph, 5) for graph in graphs]
        if kind == "sbm":
            raw = [DotDict(nb_nodes=5, W=torch.ones(5, 5).char(), node_label=labels["sbm"])]
            data: Any = load_SBMsDataSetDGL(
                split=split, dataset=raw, graph_lists=lists, node_labels=[g.labels for g in graphs]
            )
        elif kind == "zinc":
            data = MoleculeDGL(
                data=[{"num_atom": 5, "bond_type": torch.ones(5, 5)}],
                graph_lists=lists,
                graph_labels=[g.labels for g in graphs],
            )
        else:
            data = TSP(
                filename="x", graph_lists=lists, edge_labels=[g.labels for g in graphs], n_samples=3
            )
        expected[split] = graphs
        content.append(data)
    more = [28, 4] if kind == "zinc" else []
    got = load_official(save(tmp_path / "x.pkl", [*content, *more], protocol))
    assert {split: len(graphs) for split, graphs in got.items()} == {
        "train": 3,
        "val": 2,
        "test": 1,
    }
    for split, graphs in expected.items():
        for mine, theirs in zip(got[split], graphs, strict=True):
            assert_equal(mine, theirs)


def three(data: Any) -> list[Any]:
    return [data, MoleculeDGL(graph_lists=[], graph_labels=[]), TSP(graph_lists=[], edge_labels=[])]


def zinc(graph: Any, label: Any = 1.0) -> list[Any]:
    return three(MoleculeDGL(graph_lists=[graph], graph_labels=[label]))


GRAPH = random_graph(0, torch.tensor(1.0))


@pytest.mark.parametrize("label", [np.float32(0.25), np.float64(0.25), np.int64(3), 0.25, 3])
def test_labels_that_are_single_numbers(tmp_path: Path, label: Any) -> None:
    got = load_official(save(tmp_path / "x.pkl", zinc(new(GRAPH, 5), label)))["train"][0].labels
    assert got.dim() == 0
    assert got.item() == label


DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.int64, torch.int32),
    *(torch.int16, torch.int8, torch.uint8, torch.bool),
]


@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 4), max_size=3),
    cut=st.booleans(),
)
def test_any_tensor_that_torch_pickles(
    tmp_path_factory: pytest.TempPathFactory, dtype: torch.dtype, shape: list[int], cut: bool
) -> None:
    # A view of a larger storage with strides of its own: torch says what it must become.
    values = torch.arange(1000).view(10, 10, 10)[1:, ::2, 3:].to(dtype)
    label = torch.arange(64)[: int(np.prod(shape))].view(shape).to(dtype)
    label = values.transpose(0, 2) if cut else label
    path = save(tmp_path_factory.mktemp("x") / "x.pkl", zinc(new(GRAPH, 5), label))
    got = load_official(path)["train"][0].labels
    assert got.dtype == dtype
    assert torch.equal(got, label)


def test_real_dgl_is_not_imported(tmp_path: Path) -> None:
    load_official(save(tmp_path / "x.pkl", zinc(old(GRAPH, 5))))
    assert not any(name.split(".")[0] == "dgl" for name in sys.modules)


# Hostile files


class Evil:
    """Has any function called with any arguments when it is unpickled."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.reduced = (function, args)

    def __reduce__(self) -> Any:
        return self.reduced


class Raw:
    """An opaque storage: the bytes of a nested pickle, as torch would hand them over."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return torch.storage._load_from_bytes, (self.data,)


def storage_bytes(values: Tensor) -> bytes:
    file = io.BytesIO()
    storage = torch.storage.TypedStorage(
        wrap_storage=values.untyped_storage(), dtype=values.dtype, _internal=True
    )
    torch.save(storage, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def hostile(marker: Path) -> dict[str, tuple[Any, str]]:
    touch = f"open({str(marker)!r}, 'w')"
    system = Evil(os.system, f"touch {marker}")
    nested = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    nested += pickle.dumps(system, 2)
    rebuild = torch._utils._rebuild_tensor_v2
    return {
        "os.system": (system, "posix.system|nt.system"),
        "eval": (Evil(eval, touch), "builtins.eval"),
        "exec": (Evil(exec, touch), "builtins.exec"),
        "open": (Evil(open, str(marker), "w"), "io.open"),
        "getattr of a list": (Evil(getattr, [], "__class__"), "builtins.getattr"),
        "getattr of a stand-in": (Evil(getattr, Frame, "__subclasses__"), "__subclasses__"),
        "getattr of the scheme": (Evil(getattr, Scheme, "__init__"), "__init__"),
        "partial": (Evil(functools.partial, os.system, f"touch {marker}"), "functools.partial"),
        "torch.load": (Evil(torch.load, str(marker)), "torch.serialization.load"),
        "pickle.loads": (Evil(pickle.loads, pickle.dumps(system)), "_pickle.loads"),
        "nested": (Evil(rebuild, Raw(nested), 0, (1,), (1,), False, OrderedDict()), "posix.system"),
        "object array": (np.array([system], dtype=object), "numpy.*_reconstruct"),
        "number array": (np.zeros(3), "numpy.*_reconstruct"),
        "object dtype": (np.dtype(object), r"numpy.dtype\('O8'\)"),
        "subclass": (Plain(x=1), "Plain"),
        "type": (type, "builtins.type"),
        "compile": (Evil(compile, "1", "x", "eval"), "builtins.compile"),
        "import": (Evil(builtins.__import__, "os"), "builtins.__import__"),
    }


CASES = list(hostile(Path("x")))


@pytest.mark.parametrize("place", ["alone", "label", "feature", "graph", "attribute"])
@pytest.mark.parametrize("case", CASES)
def test_hostile_pickles_are_refused(tmp_path: Path, case: str, place: str) -> None:
    marker = tmp_path / "marker"
    evil, name = hostile(marker)[case]
    good = new(GRAPH, 5)
    content = {
        "alone": evil,
        "label": zinc(good, evil),
        "feature": zinc(new(GRAPH._replace(ndata={}), 5, [evil, evil])),
        "graph": zinc(evil),
        "attribute": three(MoleculeDGL(x=evil, graph_lists=[good], graph_labels=[1.0])),
    }[place]
    path = save(tmp_path / "x.pkl", content, 4)
    with pytest.raises(FileError, match=rf"x\.pkl is refused, it names .*({name})"):
        load_official(path)
    assert not marker.exists()


def test_the_same_pickles_do_harm_elsewhere(tmp_path: Path) -> None:
    # Without this the test above could pass because its pickles were harmless.
    for case in ("os.system", "eval", "partial", "pickle.loads"):
        marker = tmp_path / case
        evil = hostile(marker)[case][0]
        thing = pickle.loads(dumps(evil, 4))
        if case == "partial":
            thing()
        assert marker.exists(), case


REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


@pytest.mark.parametrize(
    "code",
    [
        # Alter a function or a class that the unpickler hands out.
        REBUILD + b"}X\x01\x00\x00\x00xK\x01sb.",
        REBUILD + b"N}X\x09\x00\x00\x00_functionK\x01s\x86b.",
        b"cdgl.frame\nFrame\nN}X\x0c\x00\x00\x00__setstate__K\x01s\x86b.",
        b"cdgl.frame\nFrame\n}X\x01\x00\x00\x00xK\x01sb.",
        b"cnumpy\ndtype\n}X\x01\x00\x00\x00xK\x01sb.",
        b"c__main__\nDotDict\n}X\x01\x00\x00\x00xK\x01sb.",
        # Fetch something by a persistent id, or by an extension code.
        b"Pevil\n.",
        b"\x82\x01.",
        # Make a bytearray of a number: memory without end.
        b"cbuiltins\nbytearray\n(I1000000000000\ntR.",
        # Make an object of a class of the pickle's choice.
        b"cdgl._ffi.object\n_new_object\n(cbuiltins\nslice\ntR.",
    ],
)
def test_tricks_with_opcodes(tmp_path: Path, code: bytes) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x03" + code)
    with pytest.raises(FileError, match=r"x\.pkl is (refused|not a whole official pickle)"):
        load_official(path)
    # Nothing was altered: a good file still reads well.
    assert_equal(load_official(save(path, zinc(new(GRAPH, 5))))["train"][0], GRAPH)


def test_dotted_names_reach_nothing(tmp_path: Path) -> None:
    # From protocol 4 on a name may have dots: "dgl.frame" and "Frame.__init__.__globals__".
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x04\x8c\x09dgl.frame\x8c\x0eFrame.__init__\x93.")
    with pytest.raises(FileError, match=r"names dgl\.frame\.Frame\.__init__"):
        load_official(path)


def test_tensor_larger_than_its_storage(tmp_path: Path) -> None:
    raw = Raw(storage_bytes(torch.zeros(1)))
    bomb = Evil(torch._utils._rebuild_tensor_v2, raw, 0, (10**12,), (0,), False, OrderedDict())
    with pytest.raises(FileError, match="a tensor is larger than its storage"):
        load_official(save(tmp_path / "x.pkl", zinc(new(GRAPH, 5), bomb)))


# Broken files


def test_truncated(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    whole = dumps(zinc(new(GRAPH, 5)))
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileError, match="not a whole official pickle"):
            load_official(path)


def test_storage_cut_short(tmp_path: Path) -> None:
    data = storage_bytes(torch.zeros(3))
    whole, short = Raw(data), Raw(data[:-1])
    for raw, error in ((whole, None), (short, "a storage is cut short")):
        label = Evil(torch._utils._rebuild_tensor_v2, raw, 0, (3,), (1,), False, OrderedDict())
        path = save(tmp_path / "x.pkl", zinc(new(GRAPH, 5), label))
        if error is None:
            assert load_official(path)["train"][0].labels.tolist() == [0, 0, 0]
        else:
            with pytest.raises(FileError, match=error):
                load_official(path)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"x\.pkl is not there"):
        load_official(tmp_path / "x.pkl")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (3, "must hold a list"),
        ([1, 2], "must hold a list"),
        ([1, 2, 3], "expected data.SBMs"),
        (three(MoleculeDGL(graph_lists=[])), "no labels"),
        (three(MoleculeDGL(graph_lists=[], graph_labels=[1])), "zip"),
        (zinc(3), "expected dgl.graph.DGLGraph"),
        (zinc(new(GRAPH, 4)), "4 nodes has an edge to a node that is not there"),
        (zinc(old(GRAPH, 4)), "4 nodes has an edge to a node that is not there"),
        (zinc(new(GRAPH._replace(src=-GRAPH.src - 1), 5)), "a node that is not there"),
        (zinc(new(GRAPH._replace(src=GRAPH.src[1:]), 5)), "edges of unequal ends"),
        (zinc(new(GRAPH, 6)), "a feature of 5 rows, it must have 6"),
        (zinc(new(GRAPH, 5, [GRAPH.src])), "_from_csr"),
    ],
)
def test_wrong_content(tmp_path: Path, content: Any, error: str) -> None:
    with pytest.raises(FileError, match=f"not a whole official pickle .*{error}"):
        load_official(save(tmp_path / "x.pkl", content))
