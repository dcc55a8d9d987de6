from functools import cache
from typing import Any

from torch.nn import Module
from torch_geometric.nn import Linear
from torch_geometric.nn.models.basic_gnn import BasicGNN

from fognn.nn import FOG, WithFOG
from fognn.utils import checks


@cache
def with_fog(model: type[BasicGNN]) -> type[BasicGNN]:
    r"""Returns a subclass of one of PyG's models that has :class:`fognn.nn.FOG` beside each layer.

    The model is a :class:`torch_geometric.nn.models.GCN`, :class:`GraphSAGE`, :class:`GIN`,
    :class:`GAT`, :class:`PNA`, :class:`EdgeCNN` or a user's own subclass of :class:`BasicGNN`. All
    arguments and methods are those of the model. Two arguments are added, which a model takes if
    it passes its :obj:`**kwargs` on to :class:`BasicGNN`:

    - **fog_channels** (*int, optional*): FOG's part of :obj:`hidden_channels`. (default: half)
    - **fog_kwargs** (*dict, optional*): Arguments of :class:`fognn.nn.FOG` beside its input and
      output size, for example :obj:`{"eps": 1e-2}`. (default: :obj:`None`)

    If the last layer has :obj:`out_channels` (that is, with :obj:`jk=None`), FOG and the layer have
    :obj:`hidden_channels` together, and a linear layer maps them to :obj:`out_channels`, so that
    each output depends on both.

    Args:
        model (type): A subclass of :class:`torch_geometric.nn.models.basic_gnn.BasicGNN`.

    Example::

        net = with_fog(GCN)(16, hidden_channels=64, num_layers=3, out_channels=7, norm="batch_norm")
    """
    if not issubclass(model, BasicGNN) or model is BasicGNN:
        raise ValueError(
            f"with_fog: model must be a subclass of PyG's BasicGNN, got {model.__name__}"
        )

    class Net(model):
        def init_conv(
            self,
            in_channels: Any,
            out_channels: int,
            fog_channels: int | None = None,
            fog_kwargs: dict[str, Any] | None = None,
            **kwargs: Any,
        ) -> Module:
            hidden = self.hidden_channels
            p = hidden // 2 if fog_channels is None else fog_channels
            checks.int_in_range(type(self).__name__, "fog_channels", p, 1, hidden)
            conv = super().init_conv(in_channels, hidden - p, **kwargs)
            # FOG has one matrix for sources and targets.
            same = isinstance(in_channels, tuple) and len(set(in_channels)) == 1
            fog = FOG(in_channels[0] if same else in_channels, p, **(fog_kwargs or {}))
            # BasicGNN sets this before it builds a layer with out_channels.
            if getattr(self, "_is_conv_to_out", False):
                return _ToOut(conv, fog, hidden, out_channels)
            return WithFOG(conv, fog)

        def __reduce_ex__(self, protocol: Any) -> tuple:
            return _empty, (model,), self.__getstate__()

    Net.__name__ = Net.__qualname__ = f"{model.__name__}WithFOG"
    Net.__doc__ = f"{model.__name__} with FOG beside each layer, see :func:`with_fog`."
    return Net


class _ToOut(WithFOG):
    """The last layer of a model: a linear layer after FOG and the layer beside it."""

    def __init__(self, conv: Module, fog: FOG, hidden: int, out_channels: int) -> None:
        super().__init__(conv, fog)
        self.lin = Linear(hidden, out_channels)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin.reset_parameters()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.lin(super().forward(*args, **kwargs))


def _empty(model: type[BasicGNN]) -> Module:
    net: Any = with_fog(model)  # type: ignore[arg-type]
    return net.__new__(net)
