"""Encoders of a dataset's inputs: tokens, columns of tokens, features, a constant, or random
walks."""

import torch
from torch import Tensor
from torch.nn import Embedding, EmbeddingBag, Module
from torch_geometric.nn import BatchNorm, Linear

from fognn.ops import EdgeTable
from fognn.utils import checks


class TokenEncoder(Module):
    r"""A learnt vector for each of :obj:`num_tokens` tokens.

    Args:
        num_tokens (int): The number of tokens.
        channels (int): Size of each output sample.
        name (str, optional): The name of the input in errors. (default: :obj:`"x"`)
    """

    def __init__(self, num_tokens: int, channels: int, name: str = "x") -> None:
        super().__init__()
        self.in_channels = checks.positive_int("TokenEncoder", "num_tokens", num_tokens)
        self.out_channels = checks.positive_int("TokenEncoder", "channels", channels)
        self.name = name
        self.embedding = Embedding(num_tokens, channels)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.embedding.reset_parameters()

    def forward(self, token: Tensor) -> Tensor:
        return self.embedding(self._checked(token))

    def table(self, token: Tensor) -> EdgeTable:
        r"""Returns the vectors of all tokens, and the token of each edge."""
        return EdgeTable(self.embedding.weight, self._checked(token))

    def _checked(self, token: Tensor) -> Tensor:
        if token.dim() == 2 and token.size(1) == 1:  # the layout of PyG's own datasets
            token = token.squeeze(1)
        if token.dim() != 1 or token.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"{self.name} must hold one integer token a row, got {token.dtype} of shape "
                f"{list(token.shape)}"
            )
        wrong = checks.outside(token, self.in_channels)
        if wrong is not None:
            raise ValueError(
                f"{self.name} must hold tokens in 0..{self.in_channels - 1}, got {wrong}"
            )
        return token


class ColumnsEncoder(Module):
    r"""The sum of a learnt vector for each column of tokens, such as PyG's features of atoms.

    Args:
        num_tokens (tuple): The number of tokens of each column.
        channels (int): Size of each output sample.
        name (str, optional): The name of the input in errors. (default: :obj:`"x"`)
    """

    first: Tensor

    def __init__(self, num_tokens: tuple[int, ...], channels: int, name: str = "x") -> None:
        super().__init__()
        for number in num_tokens:
            checks.positive_int("ColumnsEncoder", "num_tokens", number)
        self.num_tokens = tuple(num_tokens)
        self.in_channels = len(self.num_tokens)
        self.out_channels = checks.positive_int("ColumnsEncoder", "channels", channels)
        self.name = name
        # One table for all columns: the tokens of a column begin where those before it end.
        self.embedding = EmbeddingBag(sum(self.num_tokens), channels, mode="sum")
        ends = torch.tensor(self.num_tokens).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(self.num_tokens), persistent=False)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.embedding.reset_parameters()

    def forward(self, token: Tensor) -> Tensor:
        if (
            token.dim() != 2
            or token.size(1) != self.in_channels
            or token.dtype not in (torch.int64, torch.int32)
        ):
            raise ValueError(
                f"{self.name} must hold {self.in_channels} columns of integer tokens, got "
                f"{token.dtype} of shape {list(token.shape)}"
            )
        limit = torch.tensor(self.num_tokens, device=token.device)
        if not torch.compiler.is_compiling() and token.numel():
            wrong = ((token < 0) | (token >= limit)).any(dim=0)
            if bool(wrong.any()):
                column = int(wrong.nonzero()[0])
                values = token[:, column]
                found = values[(values < 0) | (values >= self.num_tokens[column])][0]
                raise ValueError(
                    f"{self.name} must hold tokens in 0..{self.num_tokens[column] - 1} in column "
                    f"{column}, got {int(found)}"
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
        self.out_channels = checks.positive_int("FeatureEncoder", "channels", channels)
        self.name = name
        self.lin = Linear(in_channels, channels)

    @property
    def in_channels(self) -> int:
        return self.lin.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()

    def forward(self, feature: Tensor) -> Tensor:
        if feature.dim() == 1:
            feature = feature.unsqueeze(1)
        owner = type(self).__name__
        checks.features(owner, self.name, feature, self.in_channels, self.lin.weight.dtype)
        return self.lin(feature)


class ConstantEncoder(Module):
    r"""A Linear of the constant 1, for edges without features: one row for all edges.

    Args:
        channels (int): Size of each output sample.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.in_channels = 1
        self.out_channels = checks.positive_int("ConstantEncoder", "channels", channels)
        self.lin = Linear(1, channels)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()

    def forward(self) -> Tensor:
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
