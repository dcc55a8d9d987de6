import csv
import itertools

import networkx
import pytest

from fognn.datasets.zinc_label import _longest_ring, penalised_logp

Chem = pytest.importorskip("rdkit.Chem")


def csv_rows(real_data, split):
    with open(real_data / "zinc" / f"zinc12k_{split}.csv", newline="") as file:
        yield from csv.DictReader(file)


def test_penalised_logp_is_the_published_label(real_data):
    for row in itertools.islice(csv_rows(real_data, "test"), 300):
        assert penalised_logp(row["smiles"]) == pytest.approx(float(row["y"]), abs=1e-6)


@pytest.mark.slow
def test_penalised_logp_of_all_molecules(real_data):
    for split in ("train", "val", "test"):
        for row in csv_rows(real_data, split):
            assert penalised_logp(row["smiles"]) == pytest.approx(float(row["y"]), abs=1e-6), row


def test_longest_ring_is_that_of_networkx_and_of_the_label(real_data):
    large = [row for row in csv_rows(real_data, "train") if float(row["cycle"]) < 0]
    assert len(large) > 50
    for row in [*large, *itertools.islice(csv_rows(real_data, "val"), 100)]:
        molecule = Chem.MolFromSmiles(row["smiles"])
        graph = networkx.Graph(Chem.GetAdjacencyMatrix(molecule))
        rings = networkx.cycle_basis(graph, root=0)
        longest = _longest_ring(molecule)
        assert longest == max(map(len, rings), default=0)
        assert -max(0, longest - 6) == float(row["cycle"])


def test_longest_ring_of_several_pieces():
    assert _longest_ring(Chem.MolFromSmiles("CCO.C1CCCCCCC1.C1CC1")) == 8
    assert _longest_ring(Chem.MolFromSmiles("CCO")) == 0
