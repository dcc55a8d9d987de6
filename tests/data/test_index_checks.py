import pytest
import torch
from torch_geometric.data import Data

from fognn.data.index_checks import check_alike

FIRST = Data(x=torch.zeros(3, 2), edge_index=torch.zeros(2, 4, dtype=torch.long), name="a", n=1)


def test_alike_but_for_the_number_of_nodes_and_edges() -> None:
    other = FIRST.clone()
    other.x, other.edge_index = torch.zeros(5, 2), torch.zeros(2, 9, dtype=torch.long)
    check_alike(1, other, FIRST)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("x", torch.zeros(3, 7), r"dataset\[1\]: 'x' is torch.float32 \[\*, 7\], it must be like"),
        ("x", torch.zeros(3, 2).long(), r"'x' is torch.int64 .* dataset\[0\], torch.float32"),
        ("x", torch.eye(3).to_sparse(), "'x' must be a dense tensor, a number or a string"),
        ("name", ["a", "b"], "'name' must be a dense tensor, a number or a string, got list"),
        ("n", "one", "'n' is str, it must be like that of dataset"),
        ("extra", 1, r"dataset\[1\] is a Data with \[.*'extra'.*\], it must be like dataset\[0\]"),
    ],
)
def test_differences_are_named(key: str, value: object, message: str) -> None:
    other = FIRST.clone()
    other[key] = value
    with pytest.raises(ValueError, match=message):
        check_alike(1, other, FIRST)
