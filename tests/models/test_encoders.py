import pytest
import torch

from fognn.models.graph_net import FeatureEncoder, TokenEncoder


def test_tokens() -> None:
    encoder = TokenEncoder(5, 3)
    token = torch.tensor([0, 4, 4])
    out = encoder(token)
    assert torch.equal(out, encoder.embedding.weight[token])
    assert torch.equal(encoder(token.unsqueeze(1)), out)  # PyG's layout
    assert torch.equal(encoder(token.int()), out)
    assert encoder(torch.empty(0, dtype=torch.long)).shape == (0, 3)
    for bad in (5, -1):
        with pytest.raises(ValueError, match=rf"x must hold tokens in 0\.\.4, got {bad}"):
            encoder(torch.tensor([0, bad]))
    with pytest.raises(ValueError, match=r"edge_attr must hold .* of shape \[3, 2\]"):
        TokenEncoder(5, 3, "edge_attr")(torch.ones(3, 2).long())


def test_features() -> None:
    encoder = FeatureEncoder(1, 3)
    feature = torch.randn(4)
    torch.testing.assert_close(encoder(feature), encoder.lin(feature.unsqueeze(1)))
    with pytest.raises(ValueError, match="x must have 1 channels, got 2"):
        encoder(torch.randn(4, 2))


def test_columns_of_tokens_are_a_sum_of_embeddings() -> None:
    encoder = TokenEncoder((3, 1, 4), 5)
    token = torch.tensor([[2, 0, 3], [0, 0, 0]])
    tables = encoder.embedding.weight.split([3, 1, 4])
    expected = sum(table[token[:, column]] for column, table in enumerate(tables))
    torch.testing.assert_close(encoder(token), expected)
    assert encoder(torch.empty(0, 3, dtype=torch.long)).shape == (0, 5)
    assert list(encoder.state_dict()) == ["embedding.weight"]
    for bad in (4, -1):
        message = rf"x must hold tokens in 0\.\.3 in column 2, got {bad}"
        with pytest.raises(ValueError, match=message):
            encoder(torch.tensor([[2, 0, 3], [0, 0, bad]]))
    for wrong in (token[:, :2], token.float(), token[0]):
        with pytest.raises(ValueError, match="x must hold 3 columns of integer tokens, got"):
            encoder(wrong)
