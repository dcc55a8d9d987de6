"""Encoders of a dataset's inputs: tokens, features, a constant, or random walks."""

import torch
from torch import Tensor
from torch.nn import EmbeddingBag, Module
from torch_geometric.nn import BatchNorm, Linear

from fognn.utils import checks


class TokenEncoder(Module):
    r"""The sum of a learnt vector for each column of tokens, such as PyG's features of atoms.

    Args:
        num_tokens (int or tuple): The number of tokens, or that of each column.
        channels (int): Size of each output sample.
        name (str, optional): The name of the input in errors. (default: :obj:`"x"`)
    """

    first: Tensor

    def __init__(self, num_tokens: int | tuple[int, ...], channels: int, name: str = "x") -> None:
        super().__init__()
        self.num_tokens = (num_tokens,) if isinstance(num_tokens, int) else tuple(num_tokens)
        for number in self.num_tokens:
            checks.positive_int("TokenEncoder", "num_tokens", number)
        self.in_channels = sum(self.num_tokens)
        self.out_channels = checks.positive_int("TokenEncoder", "channels", channels)
        self.name = name
        # One table for all columns: the tokens of a column begin where those before it end.
        self.embedding = EmbeddingBag(self.in_channels, channels, mode="sum")
        ends = torch.tensor(self.num_tokens).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(self.num_tokens), persistent=False)
        self._scale()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.embedding.reset_parameters()
        self._scale()

    def _scale(self) -> None:
        with torch.no_grad():  # so that the sum has the variance of a single column
            self.embedding.weight.div_(len(self.num_tokens) ** 0.5)

    def forward(self, token: Tensor) -> Tensor:
        if token.dim() == 1:
            token = token.unsqueeze(1)
        integers = token.dtype in (torch.int64, torch.int32)
        if token.dim() != 2 or token.size(1) != len(self.num_tokens) or not integers:
            raise ValueError(
                f"{self.name} must hold {len(self.num_tokens)} columns of integer tokens, got "
                f"{token.dtype} of shape {list(token.shape)}"
            )
        for column, number in enumerate(self.num_tokens):
            wrong = checks.outside(token[:, column], number)
            if wrong is not None:
                where = f" in column {column}" if len(self.num_tokens) > 1 else ""
                raise ValueError(
                    f"{self.name} must hold tokens in 0..{number - 1}{where}, got {wrong}"
                )
        if not token.size(0):
            return self.embedding.weight.new_zeros(0, self.out_channels)
        return self.embedding(token + self.first)


class FeatureEncoder(Module):
    r"""A Linear of the features.

    Args:
        in_channels (int): Size of each input sample.
        channels (int): Size of each output sample.
        name (str, optional): The name of the input in errors. (default: :obj:`"x"`)
    """

    def __init__(self, in_channels: int, channels: int, name: str = "x") -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = checks.positive_int("FeatureEncoder", "channels", channels)
        self.name = name
        self.lin = Linear(in_channels, channels)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()

    def forward(self, feature: Tensor) -> Tensor:
        if feature.dim() == 1:
            feature = feature.unsqueeze(1)
        dtype = self.lin.weight.dtype
        checks.features("FeatureEncoder", self.name, feature, self.in_channels, dtype)
        return self.lin(feature)


class ConstantEncoder(FeatureEncoder):
    r"""A Linear of the constant 1, for edges without features: one row for all edges."""

    def __init__(self, channels: int) -> None:
        super().__init__(1, channels)

    def forward(self) -> Tensor:  # type: ignore[override]
        return self.lin(self.lin.weight.new_ones(1, 1))


class WalkEncoder(Module):
    r"""BatchNorm and a Linear of the random-walk encodings of nodes.

    Args:
        steps (int): Number of columns of the encodings.
        channels (int): Size of each output sample.
    """

    def __init__(self, steps: int, channels: int) -> None:
        super().__init__()
        self.in_channels = checks.positive_int("WalkEncoder", "steps", steps)
        self.out_channels = checks.positive_int("WalkEncoder", "channels", channels)
        self.norm = BatchNorm(steps, allow_single_element=True)
        self.lin = Linear(steps, channels)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.norm.reset_parameters()
        self.lin.reset_parameters()

    def forward(self, rwse: Tensor) -> Tensor:
        checks.features("WalkEncoder", "rwse", rwse, self.in_channels, self.lin.weight.dtype)
        return self.lin(self.norm(rwse))
