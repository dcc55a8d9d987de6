import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.data.pieces import offsets, positions, repeat


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8), st.booleans())
def test_positions_are_those_of_ranges(pieces, short):
    dtype = torch.int32 if short else torch.int64
    begin = torch.tensor([b for b, _ in pieces], dtype=dtype)
    sizes = torch.tensor([s for _, s in pieces], dtype=dtype)
    ptr = offsets(sizes.long())
    assert ptr.tolist() == [sum(s for _, s in pieces[:i]) for i in range(len(pieces) + 1)]
    out = positions(begin, sizes, ptr, int(ptr[-1]))
    assert out.tolist() == [i for b, s in pieces for i in range(b, b + s)]
    assert out.dtype == dtype
    assert repeat(begin, sizes).tolist() == [b for b, s in pieces for _ in range(s)]
