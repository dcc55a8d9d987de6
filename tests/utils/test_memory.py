import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fognn.utils.errors import TrainingError
from fognn.utils.memory import (
    MemoryLimitError,
    describe,
    is_out_of_memory,
    memory_errors,
    source_too_large,
)

CPU = (
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
)
CUDA = "CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity of 8.00 GiB"
NUMPY = "Unable to allocate 3.73 GiB for an array with shape (1000, 500000) and data type float64"
ERRORS = [
    (RuntimeError(CPU), " for a tensor of 4 GiB"),
    (torch.OutOfMemoryError(CUDA), " for a tensor of 20.50 GiB"),
    (MemoryError(NUMPY), " for a tensor of 3.73 GiB and shape (1000, 500000)"),
    (MemoryError(), ""),
]


@pytest.mark.parametrize(("error", "tensor"), ERRORS)
def test_the_allocation(error: Exception, tensor: str) -> None:
    assert is_out_of_memory(error)
    assert describe(error) == f"out of memory{tensor}"
    words = r"^out of memory.*: big\.csv is too large"
    with (
        pytest.raises(MemoryLimitError, match=words),
        memory_errors(source_too_large("big.csv")),
    ):
        raise error


def test_what_torch_and_numpy_raise_here() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.uint8)
    assert describe(caught.value).startswith("out of memory for a tensor of 33,554,432 GiB")
    with pytest.raises(MemoryError) as numpy_error:
        np.empty(2**55, dtype=np.uint8)
    assert "shape (36028797018963968,)" in describe(numpy_error.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert not is_out_of_memory(TrainingError("out of memory"))
    with pytest.raises(RuntimeError, match="shapes"), memory_errors(source_too_large("a")):
        raise RuntimeError("shapes do not match")


def test_the_largest_tensor_and_the_batch() -> None:
    def inner(messages: torch.Tensor) -> torch.Tensor:
        scale = torch.ones(3)
        sparse = torch.eye(4).to_sparse()
        return torch.empty(2**55, dtype=torch.uint8) * messages * scale * sparse

    def outer(batch: Data) -> torch.Tensor:
        assert batch.x is not None
        return inner(batch.x.repeat(8, 1))

    graph = Data(x=torch.zeros(2000, 16), edge_index=torch.zeros(2, 5000, dtype=torch.long))
    with pytest.raises(RuntimeError) as caught:
        outer(graph)
    text = describe(caught.value)
    assert "(the largest one there: messages, 16000 x 16, 1,000 KiB)" in text
    assert text.endswith(", in a batch of 2,000 nodes and 5,000 edges")
