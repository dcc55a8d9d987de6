"""The user's data as one object: what it is opened from, its splits, and its identity."""

import csv
import json

import pytest
import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.transforms import AddRandomWalkPE

from fognn.data import UserData, open_user_data, write_graphs
from fognn.data.opening import fill_inputs
from fognn.data.splits import SPLITS


def graph(number: int, **other) -> Data:
    generator = torch.Generator().manual_seed(number)
    nodes = 4 + number % 5
    values = {
        "x": torch.randn(nodes, 3, generator=generator),
        "edge_index": torch.randint(nodes, (2, 10), generator=generator),
        "y": torch.tensor([number % 3]),
    }
    return Data(**{**values, **other})


GRAPHS = [graph(number) for number in range(30)]


def sizes(data: UserData, *arguments, **options) -> list[int]:
    found = data.splits(*arguments, **options)
    return [len(found[split]) for split in SPLITS]


class Collated(InMemoryDataset):
    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


# Python objects


def test_the_identity_is_the_content_of_each_split_in_order():
    whole = {"train": GRAPHS[:10], "val": GRAPHS[10:20], "test": GRAPHS[20:]}
    name = open_user_data(whole).name
    others = [
        {"train": GRAPHS[:12], "val": GRAPHS[12:20], "test": GRAPHS[20:]},
        {"train": GRAPHS[10:20], "val": GRAPHS[:10], "test": GRAPHS[20:]},
        {"train": GRAPHS[9::-1], "val": GRAPHS[10:20], "test": GRAPHS[20:]},
        {**whole, "train": [*GRAPHS[:9], graph(9, y=torch.tensor([1]))]},
        GRAPHS,
    ]
    names = [open_user_data(other).name for other in others]
    assert len({name, *names}) == 6
    assert open_user_data({split: list(part) for split, part in whole.items()}).name == name


def test_datasets_and_splits_that_are_given():
    parts = (GRAPHS[:20], Collated(GRAPHS[20:24]), GRAPHS[24:])
    for source in (parts, dict(zip(SPLITS, parts, strict=True))):
        data = open_user_data(source)
        assert sizes(data) == [20, 4, 6]
        assert torch.equal(data.graphs[21].x, GRAPHS[21].x)
    data = open_user_data(Collated(GRAPHS))
    assert sizes(data) == [24, 3, 3]
    assert (data.level, data.targets.kind, data.targets.columns) == ("graph", "classes", 3)
    assert open_user_data(data) is data


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (HeteroData(), "got HeteroData"),
        ([HeteroData()], "got HeteroData"),
        ((GRAPHS[:10], GRAPHS[10:]), "three parts"),
        ({"train": GRAPHS}, "three parts, train, val, test"),
        ([], "must be a PyG dataset"),
        (3, "must be a PyG dataset"),
        ([Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0).long())], "graph 0 must have y"),
        (GRAPHS[:9], "at least 10 graphs"),
    ],
)
def test_other_objects(source, message):
    with pytest.raises(ValueError, match=message) as error:
        open_user_data(source).splits()
    assert "\n" not in str(error.value)


# Files


def test_a_file_of_graphs(tmp_path):
    write_graphs(tmp_path / "a.npz", GRAPHS)
    data = open_user_data(tmp_path / "a.npz")
    assert data.name == str(tmp_path / "a.npz")
    assert sizes(data, "random", seed=3) == [24, 3, 3]
    assert sizes(data, fraction=0.5) == [12, 1, 2]
    assert data.splits(seed=3)["train"].tolist() != data.splits(seed=4)["train"].tolist()
    for wrong in ("scaffold", "folds", "all"):
        with pytest.raises(ValueError, match=r"data\.split must"):
            data.splits(wrong)
    with pytest.raises(ValueError, match=r"data\.fold must"):
        data.splits(fold=2)


def test_two_classes_are_the_same_in_csv_and_graph_files(tmp_path):
    """Yes or no in a csv file; classes 0 and 1, or 0.0 and 1.0, in a file of graphs."""
    lines = [f"{'C' * (n + 1)},{n % 2}" for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y", *lines]))
    assert open_user_data(tmp_path / "a.csv", target="y").targets.kind == "yes/no"
    graphs = [graph(n, y=torch.tensor([n % 2])) for n in range(20)]
    assert open_user_data(graphs).targets.columns == 2
    graphs = [graph(n, y=torch.tensor([n % 2.0])) for n in range(20)]
    assert open_user_data(graphs).targets.kind == "yes/no"


@pytest.fixture
def molecules(tmp_path):
    """20 molecules, of which line 5 cannot be read."""
    rings = ["c1ccccc1"] * 15 + ["C1CC1"] * 2 + ["C1CCC1"] * 2 + ["C1CCCC1"]
    smiles = [ring + "C" * (n + 1) for n, ring in enumerate(rings)]
    smiles[3] = "C1CC"
    parts = ["train"] * 12 + ["valid"] * 4 + ["test"] * 4
    lines = [f"{smiles[n]},{n / 10},{parts[n]}" for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y,part", *lines]))
    return tmp_path / "a.csv"


def test_splits_of_molecules(molecules, tmp_path):
    pytest.importorskip("rdkit")
    data = open_user_data(molecules, target="y", skip_bad=True)
    assert (len(data.graphs), data.skipped, data.bad) == (19, [3], 1)
    assert "line 5" in " ".join(data.notes)
    assert sum(sizes(data, "scaffold")) == 19
    column = open_user_data(molecules, target="y", split_column="part", skip_bad=True)
    assert sizes(column) == [11, 4, 4]

    # By a file: with the numbers of lines, or with names.
    names = [text for text, *_ in csv.reader(molecules.read_text().splitlines()[1:])]
    numbers = {"train": list(range(10)), "validation": [10, 11], "test": [19]}
    (tmp_path / "s.json").write_text(json.dumps(numbers))
    found = data.splits(str(tmp_path / "s.json"))
    assert [len(found[split]) for split in SPLITS] == [9, 2, 1]
    assert [data.rows[item] for item in found["val"].tolist()] == [10, 11]
    by_name = {part: [names[n] for n in some if n != 3] for part, some in numbers.items()}
    (tmp_path / "n.json").write_text(json.dumps(by_name))
    lines = [f"{n},{part}" for part, some in numbers.items() for n in some]
    (tmp_path / "s.csv").write_text("\n".join(["item,split", *lines]))
    for name in ("n.json", "s.csv"):
        again = data.splits(str(tmp_path / name))
        assert all(again[split].tolist() == found[split].tolist() for split in SPLITS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train": [0, 1], "val": [1], "test": [2]}, "one split only"),
        ({"train": [0, 99], "val": [1], "test": [2]}, "99 must be the number or name"),
        ({"train": [0], "val": ["nope"], "test": [2]}, "'nope' must be the number or name"),
        ({"train": [0], "val": [1]}, "the test split must have a graph"),
        ({"train": [0], "dev1": [1], "test": [2]}, "must be train, val or test"),
        ([1, 2], "must be a json file"),
    ],
)
def test_wrong_files_of_splits(tmp_path, content, message):
    (tmp_path / "s.json").write_text(json.dumps(content))
    with pytest.raises((ValueError, RuntimeError), match=message):
        open_user_data(GRAPHS).splits(str(tmp_path / "s.json"))


def test_targets_that_cannot_be_learnt(tmp_path):
    with pytest.raises(ValueError, match="class 2 is in the val split"):
        open_user_data((GRAPHS[:2], GRAPHS[2:3], GRAPHS[3:])).splits()
    graphs = [graph(n, y=torch.tensor([float(n == 9)])) for n in range(10)]
    with pytest.raises(ValueError, match="must have both 0 and 1"):
        open_user_data((graphs[:8], graphs[8:9], graphs[9:])).splits()
    # A column of several may be constant.
    graphs = [graph(n, y=torch.tensor([[float(n == 9), n % 2]])) for n in range(10)]
    splits = open_user_data((graphs[:8], graphs[8:9], graphs[9:])).splits()
    assert splits["train"].tolist() == [*range(8)]


# One graph


def masked(**other) -> Data:
    nodes = torch.arange(9)
    values = {
        "x": torch.eye(9, 4, dtype=torch.int64),
        "edge_index": torch.tensor([[0, 1, 2, 3], [1, 2, 2, 8]]),
        "y": torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, -1]),
        "train_mask": nodes % 3 == 0,
        "val_mask": nodes % 3 == 1,
        "test_mask": nodes == 2,
    }
    return Data(**{**values, **other})


def test_one_graph_with_masks():
    data = open_user_data(masked())
    assert (data.level, data.num_splits) == ("node", 1)
    assert data.splits()["val"].tolist() == [1, 4, 7]
    assert data.graphs[0].x.dtype == torch.float32  # a bag of words, not tokens
    assert data.nodes.tolist() == list(range(8))
    assert data.packed() is data.packed()
    both = torch.stack([masked().train_mask, masked().val_mask], 1)
    data = open_user_data(masked(train_mask=both, val_mask=both.flip(1)))
    assert data.num_splits == 2
    assert data.splits(fold=2)["train"].tolist() == [1, 4, 7]
    assert data.splits(fold=2)["test"].tolist() == [2]
    with pytest.raises(ValueError, match=r"data\.fold must be one of the 2 splits"):
        data.splits(fold=3)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"val_mask": None}, "val_mask, test_mask must have shape"),
        ({"val_mask": torch.ones(3, dtype=torch.bool)}, "val_mask"),
        ({"val_mask": masked().train_mask}, "must not overlap"),
        ({"test_mask": torch.zeros(9, dtype=torch.bool)}, "must each select a node"),
        ({"test_mask": torch.arange(9) == 8}, "with a label only"),
    ],
)
def test_wrong_masks(other, message):
    with pytest.raises(ValueError, match=message):
        open_user_data(masked(**other))


def test_one_graph_without_masks():
    wide = Data(
        x=torch.randn(40, 2), edge_index=torch.randint(40, (2, 90)), y=torch.arange(40) % 4 - 1
    )
    data = open_user_data(wide)
    assert sizes(data) == [24, 3, 3]
    labelled = {item for part in data.splits().values() for item in part.tolist()}
    assert labelled == {n for n in range(40) if n % 4}


# Inputs


def test_graphs_without_features():
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    path = torch.tensor([[0, 1], [1, 2]])
    found, node_input, notes = fill_inputs([Data(edge_index=e, num_nodes=3) for e in (ring, path)])
    assert node_input == "degree"
    assert found[1].x.flatten().exp().tolist() == pytest.approx([1, 2, 2])
    assert "log(1 + in-degree)" in notes[0]
    found, node_input, _ = fill_inputs([Data(edge_index=ring, num_nodes=3)])
    assert (node_input, found[0].x.tolist()) == ("constant", [[1], [1], [1]])


def test_random_walk_encodings():
    data = open_user_data(GRAPHS)
    assert data.encoded(0) is data.graphs
    assert data.encoded(4) is data.encoded(4)
    for plain, found in zip(GRAPHS, data.encoded(4), strict=True):
        expected = AddRandomWalkPE(4, attr_name="rwse")(plain.clone()).rwse
        assert torch.equal(found.rwse, expected)
    assert "rwse" not in data.graphs[0]
