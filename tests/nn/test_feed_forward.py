import pytest
import torch

from fognn.nn import Block, FeedForward, GCNConv


def test_equals_the_equation() -> None:
    torch.manual_seed(0)
    block = FeedForward(6, 2.5).double()
    assert str(block) == "FeedForward(6, hidden=15)"
    x = torch.randn(9, 6).double().requires_grad_()
    hidden = (x @ block.lin_1.weight.t() + block.lin_1.bias).relu()
    z = x + hidden @ block.lin_2.weight.t() + block.lin_2.bias
    literal = (z - z.mean(0)) / (z.var(0, unbiased=False) + 1e-5).sqrt()
    out = block(x)
    torch.testing.assert_close(out, literal)
    grads = [torch.autograd.grad(y.sin().sum(), x)[0] for y in (out, literal)]
    torch.testing.assert_close(*grads)


def test_dropout_is_on_the_hidden_layer() -> None:
    torch.manual_seed(0)
    block = FeedForward(4, dropout=0.5)
    x = torch.randn(50, 4)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))
    with torch.no_grad():  # without the hidden layer nothing is dropped
        block.lin_2.weight.zero_()
    block.train()
    assert torch.equal(block(x), block(x))


def test_one_node_and_other_activations() -> None:
    block = FeedForward(4, 1, act="gelu")
    assert block(torch.randn(1, 4)).shape == (1, 4)
    assert isinstance(block.act, torch.nn.GELU)


@pytest.mark.parametrize("factor", [0, -1, True, "2", float("inf")])
def test_bad_factor(factor: object) -> None:
    with pytest.raises(ValueError, match=r"FeedForward: factor .*got"):
        FeedForward(4, factor)  # type: ignore[arg-type]


def test_in_a_block() -> None:
    torch.manual_seed(0)
    after = FeedForward(4)
    block, plain = Block(GCNConv(4, 4), 4, feed_forward=after), Block(GCNConv(4, 4), 4)
    plain.load_state_dict(block.state_dict(), strict=False)
    x, edges = torch.randn(5, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    block.eval(), plain.eval()
    torch.testing.assert_close(block(x, edges), after(plain(x, edges)))
    weight = after.lin_1.weight.clone()
    block.reset_parameters()
    assert not torch.equal(weight, after.lin_1.weight)
