"""The registry of networks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from torch.nn import Module
from torch_geometric.nn.resolver import activation_resolver

from fognn.models.encoders import (
    ColumnsEncoder,
    ConstantEncoder,
    FeatureEncoder,
    TokenEncoder,
    WalkEncoder,
)
from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import GraphNet
from fognn.models.heads import JumpingHead, MLPHead, OutputScale
from fognn.models.task import TASKS, Task
from fognn.nn import (
    FOG,
    Block,
    FeedForward,
    FOGControl,
    GATConv,
    GatedGCNConv,
    GCNConv,
    GINConv,
    SAGEConv,
    WithFOG,
)
from fognn.nn.fog_controls import FOG_KINDS
from fognn.utils import checks

Layer = Callable[..., Module]


@dataclass(frozen=True)
class Host:
    """A host: its layer is ``conv(channels, q, beside_fog, layer, layers, **options)``. With
    ``edge_dim``, that is a further argument for ``edge_features``."""

    conv: Layer
    act: str = "relu"
    options: tuple[str, ...] = ()
    edges: str = "none"  # none, constant, or features
    jumping: bool = False
    edge_dim: bool = False


def _gcn(channels: int, q: int, *_: Any, norm: str = "sym", edge_dim: int | None = None) -> Module:
    return GCNConv(channels, q, norm, edge_dim)


def _gat(
    channels: int,
    q: int,
    beside_fog: bool,
    layer: int,
    layers: int,
    heads: int = 8,
    edge_dim: int | None = None,
) -> Module:
    return GATConv(channels, q, 1 if layer == layers - 1 else heads, edge_dim=edge_dim)


def _gated_gcn(
    channels: int, q: int, beside_fog: bool, layer: int, layers: int, gate: str = "before"
) -> Module:
    last = layer == layers - 1  # heads do not read edge features
    return GatedGCNConv(channels, q if beside_fog else None, gate, edge_output=not last)


def _gin(
    channels: int, q: int, *_: Any, hidden: int | None = None, edge_dim: int | None = None
) -> Module:
    return GINConv(channels, q, hidden, edge_dim)


def _sage(
    channels: int,
    q: int,
    *_: Any,
    aggr: str = "max",
    benchmark: bool = False,
    edge_dim: int | None = None,
) -> Module:
    return SAGEConv(channels, q, aggr, benchmark, edge_dim)


HOSTS = {
    "gcn": Host(_gcn, options=("norm",), edge_dim=True),
    "gat": Host(_gat, act="elu", options=("heads",), edge_dim=True),
    "gatedgcn": Host(_gated_gcn, options=("gate",), edges="constant"),
    "gatedgcn-e": Host(_gated_gcn, options=("gate",), edges="features"),
    "gin": Host(_gin, options=("hidden",), jumping=True, edge_dim=True),
    "graphsage": Host(_sage, options=("aggr", "benchmark"), edge_dim=True),
}
# Without those of a user's register_host; the last three are those of fognn.models.pyg_hosts.
BUILT_IN = (*HOSTS, "film", "gatv2", "pna")
# Settings of all networks on graphs.
NET_SETTINGS = ("channels", "layers", "dropout", "ffn", "edge_features", "readout", "head")
# Settings of networks with FOG.
FOG_SETTINGS = (
    "fog_channels",
    "h1",
    "h2",
    "fog_kind",
    "fog_norm",
    "fog_act",
    "fog_eps",
    "fog_act_first",
)
FEW_SHOT = {f"fewshot-{kind}": kind for kind in ("fog", "gnn", "gnn+fog")}


def list_models(pattern: str = "*") -> list[str]:
    r"""Returns the names that :func:`create_model` accepts.

    Args:
        pattern (str, optional): A shell pattern, as in ``list_models("*fog*")``.
            (default: :obj:`"*"`)
    """
    hosts = [name for host in HOSTS for name in (host, f"{host}+fog")]
    return [name for name in ("fog", *hosts, *FEW_SHOT) if fnmatch(name, pattern.lower())]


def has_fog(name: Any) -> bool:
    r"""Whether a network on graphs has FOG, by its name."""
    name = name.lower() if isinstance(name, str) else ""
    return name.endswith("fog") and not name.startswith("fewshot-")


def create_model(
    name: str, task: str | Task | None = None, *, pretrained: bool = False, **settings: Any
) -> Module:
    r"""Builds a network by its name.

    Args:
        name (str): One of :func:`list_models`, as ``"gcn+fog"``.
        task (str or Task, optional): A :class:`Task`, or the name of one of the paper's:
            ``"pattern"``, ``"cluster"``, ``"zinc"``, ``"tsp"``, ``"imdb-multi"``. Few-shot networks
            have none. (default: :obj:`None`)
        pretrained (bool, optional): If set to :obj:`True`, returns the paper's network for the task
            with the weights that are kept in ``weights/``: those of the last epoch of its first
            seed. As in timm, it is in training mode; call :meth:`eval` before you predict.
            Settings need not be given; one that differs from the kept network raises. The weights
            are searched in the folder that ``FOGNN_WEIGHTS`` names; without it, in the clone that
            fognn runs from, and in the working directory. (default: :obj:`False`)
        **settings (optional): For networks on graphs: ``channels`` (64), ``layers`` (4),
            ``dropout`` (0.0), ``ffn`` (:obj:`None`; with a number :math:`k`, each layer is followed
            by a :class:`fognn.nn.FeedForward` of :math:`k` times as many hidden channels),
            ``edge_features`` (:obj:`False`; if set to :obj:`True`, all layers and FOG take the
            encoded edge features of the task: their ``edge_dim``),
            ``readout`` (``"mean"`` or ``"sum"`` over a graph's nodes; that of the task, for GIN
            the sum), ``head`` (``"mlp"``, :class:`fognn.models.heads.MLPHead`, or for GIN
            ``"jumping"``, :class:`fognn.models.heads.JumpingHead`); beside a host:
            ``fog_channels`` (half of ``channels``); with FOG: ``h1`` and ``h2``
            (:func:`fognn.nn.fog_widths`), ``fog_kind`` (``"kron"``, FOG itself, or a control: the
            ``kind`` of :class:`fognn.nn.FOGControl`), ``fog_norm`` (``"batch_norm"``), ``fog_act``
            (``"relu"``), ``fog_eps`` (``1e-5``) and ``fog_act_first`` (:obj:`False`; the paper's
            networks have :obj:`True`), arguments of :class:`fognn.nn.FOG`; with the head ``"mlp"``:
            ``head_channels``
            (the first hidden width of the MLP, half of its input); and the host's settings:
            ``norm`` (GCN), ``heads`` (GAT, of all layers but the last; GATv2, of all layers),
            ``gate`` (GatedGCN), ``aggr`` and ``benchmark`` (GraphSAGE), ``hidden`` (GIN, the inner
            width of each layer), ``degrees`` (PNA, the number of training nodes of each in-degree,
            from 0). For few-shot networks: the arguments of :class:`FewShotNet`.
    """
    if pretrained:
        from fognn.models.weights import pretrained_model  # which imports this module

        checks.known("create_model", "name", str(name).lower(), list_models())
        return pretrained_model(name, task, settings)
    return new_model(name, task, **settings)


def new_model(name: str, task: str | Task | None = None, **settings: Any) -> Module:
    r"""Builds a network with new weights, see :func:`create_model`."""
    key = name.lower() if isinstance(name, str) else name
    checks.known("create_model", "name", key, list_models())
    if key in FEW_SHOT:
        if task is not None:
            raise ValueError(f"create_model: task must be None for {key!r}, got {task!r}")
        return FewShotNet(FEW_SHOT[key], **settings)
    if isinstance(task, str):
        checks.known("create_model", "task", task.lower(), TASKS)
        task = TASKS[task.lower()]
    if not isinstance(task, Task):
        raise ValueError(
            f"create_model: task must be a Task or one of {', '.join(TASKS)}, got {task!r}"
        )
    return _graph_net(key, task, **settings)


def _graph_net(
    name: str,
    task: Task,
    channels: int = 64,
    layers: int = 4,
    dropout: float = 0.0,
    fog_channels: int | None = None,
    h1: int | None = None,
    h2: int | None = None,
    fog_kind: str | None = None,
    fog_norm: str | None = None,
    fog_act: str | None = None,
    fog_eps: float | None = None,
    fog_act_first: bool | None = None,
    head_channels: int | None = None,
    ffn: float | None = None,
    readout: str | None = None,
    edge_features: bool = False,
    head: str | None = None,
    **options: Any,
) -> GraphNet:
    checks.positive_int("create_model", "channels", channels)
    checks.positive_int("create_model", "layers", layers)
    factor = _ffn_factor(ffn)
    readout = _readout(task, readout)
    host_name, _, fog_name = name.rpartition("+") if name.endswith("fog") else (name, "", "")
    host = HOSTS[host_name] if host_name else None
    allowed = host.options if host else ()
    jumping = head_of(host, head) == "jumping"
    if jumping and head_channels is not None:
        options["head_channels"] = head_channels  # which no option of such a host is
    for option in options:
        if option not in allowed:
            own = [*(FOG_SETTINGS if fog_name else ())]
            own += [] if jumping else ["head_channels"]
            known = ", ".join((*allowed, *NET_SETTINGS, *own))
            raise ValueError(f"create_model: {name!r} has no setting {option!r}; known: {known}")

    p = 0
    if fog_name:
        p = _fog_channels(name, channels, fog_channels, alone=host is None)
        norm = _fog_norm(fog_norm, fog_act, fog_eps, fog_act_first)
        kind = "kron" if fog_kind is None else fog_kind
        checks.one_of("create_model", "fog_kind", kind, FOG_KINDS)
    else:
        values = (fog_channels, h1, h2, fog_kind, fog_norm, fog_act, fog_eps, fog_act_first)
        given = zip(FOG_SETTINGS, values, strict=True)
        for setting, value in given:
            if value is not None:
                raise ValueError(
                    f"create_model: {setting} must be None for {name!r}, which has no FOG, got "
                    f"{value!r}"
                )

    edges = host.edges if host else "none"
    shared = edge_features and edges == "none"  # no layer returns new ones
    if edge_features:
        _check_edge_features(name, host, edge_features)
        edges = "features"
    # Layers that take edge features in any case have no edge_dim.
    own_edges = {"edge_dim": channels} if edge_features and host and host.edge_dim else {}
    blocks = []
    for layer in range(layers):
        parts: list[Module] = []
        if host is not None:
            parts.append(
                host.conv(channels, channels - p, p > 0, layer, layers, **own_edges, **options)
            )
        if p:
            edge_dim = channels if edge_features else None
            if kind == "kron":
                parts.append(FOG(channels, p, h1, h2, edge_dim, **norm))
            else:
                parts.append(FOGControl(channels, p, h1, h2, kind, edge_dim=edge_dim, **norm))
        conv = WithFOG(*parts) if len(parts) == 2 else parts[0]  # type: ignore[arg-type]
        # The benchmark's GraphSAGE has its activation inside, before the norm.
        act = None if options.get("benchmark") else (host.act if host else "relu")
        after = FeedForward(channels, factor, dropout=dropout) if factor else None
        blocks.append(Block(conv, channels, act, dropout=dropout, feed_forward=after))

    readout = readout or ("sum" if host and host.jumping else task.readout)
    ends: MLPHead | JumpingHead
    if jumping:
        ends = JumpingHead(channels, task.out_channels, task.level, layers + 1, readout)
    else:
        ends = MLPHead(channels, task.out_channels, task.level, readout, head_channels)
    edge_encoder = _edge_encoder(name, task, channels, edges, shared)
    scale = OutputScale(task.mean, task.std) if task.mean and task.std else None
    walks = WalkEncoder(task.encodings, channels) if task.encodings else None
    encoder = _node_encoder(task, channels)
    return GraphNet(encoder, blocks, ends, edge_encoder, scale, shared, walks)


def head_of(host: Host | None, head: str | None = None) -> str:
    r"""Returns the head of a network: the one that is given, or that of its host."""
    allowed = ("jumping", "mlp") if host is not None and host.jumping else ("mlp",)
    if head is not None:
        checks.one_of("create_model", "head", head, allowed)
    return head or allowed[0]


def _check_edge_features(name: str, host: Host | None, edge_features: bool) -> None:
    if edge_features is not True:
        raise ValueError(f"create_model: edge_features must be a bool, got {edge_features!r}")
    if host is None or host.edge_dim or host.edges == "features":
        return
    if host.edges == "constant":
        other = name.replace("gatedgcn", "gatedgcn-e", 1)
        raise ValueError(
            f"create_model: edge_features must be False for {name!r}, got True: {other!r} is that "
            "network with edge features"
        )
    raise ValueError(
        f"create_model: edge_features must be False for {name!r}, whose layer takes none (edges of "
        "register_host), got True"
    )


def _ffn_factor(ffn: float | None) -> float:
    r"""Returns the factor of the feed-forward blocks; 0 for none."""
    factor = 0 if ffn is None or ffn is False else ffn
    number = isinstance(factor, int | float) and not isinstance(factor, bool)
    if not (number and 0 <= factor < math.inf):
        raise ValueError(
            "create_model: ffn must be the factor of the hidden channels, such as 2, or None, got "
            f"{ffn!r}"
        )
    return factor


def _readout(task: Task, readout: str | None) -> str | None:
    if readout is None:
        return None
    checks.one_of("create_model", "readout", readout, ("mean", "sum"))
    if task.level != "graph":
        raise ValueError(
            f"create_model: readout must be None for outputs on {task.level}s, got {readout!r}"
        )
    return readout


def _fog_channels(name: str, channels: int, fog_channels: int | None, alone: bool) -> int:
    if alone:
        if fog_channels not in (None, channels):
            raise ValueError(
                f"create_model: fog_channels must be {channels}, like channels, for {name!r} "
                f"alone, got {fog_channels}"
            )
        return channels
    p = channels // 2 if fog_channels is None else fog_channels
    if isinstance(p, bool) or not isinstance(p, int) or not 1 <= p < channels:
        raise ValueError(
            f"create_model: fog_channels must lie in 1..{channels - 1}, below channels, got {p!r}"
        )
    return p


def _fog_norm(
    norm: str | None, act: str | None, eps: float | None, act_first: bool | None
) -> dict[str, Any]:
    r"""Returns the arguments of FOG."""
    norm = "batch_norm" if norm is None else norm
    act = "relu" if act is None else act
    checks.one_of("create_model", "fog_norm", norm, ("batch_norm", "layer_norm"))
    try:
        known = isinstance(act, str) and activation_resolver(act) is not None
    except (ValueError, TypeError):
        known = False
    if not known:
        raise ValueError(
            f"create_model: fog_act must be the name of an activation, such as 'gelu', got {act!r}"
        )
    number = isinstance(eps, int | float) and not isinstance(eps, bool)
    if eps is not None and not (number and 0 < eps < math.inf):
        raise ValueError(f"create_model: fog_eps must be a positive number, got {eps!r}")
    if act_first not in (None, True, False):
        raise ValueError(f"create_model: fog_act_first must be a bool, got {act_first!r}")
    return {"norm": norm, "act": act, "eps": eps, "act_first": act_first is True}


def _node_encoder(task: Task, channels: int) -> Module:
    if task.node_tokens is not None:
        return _token_encoder(task.node_tokens, channels, "x")
    return FeatureEncoder(task.node_channels, channels)  # type: ignore[arg-type]


def _token_encoder(tokens: int | tuple[int, ...], channels: int, name: str) -> Module:
    kind: Any = ColumnsEncoder if isinstance(tokens, tuple) else TokenEncoder
    encoder: Module = kind(tokens, channels, name=name)
    return encoder


def _edge_encoder(name: str, task: Task, channels: int, edges: str, shared: bool) -> Module | None:
    if edges == "none":
        return None
    if edges == "constant":
        return ConstantEncoder(channels)
    if task.edge_tokens is not None:
        return _token_encoder(task.edge_tokens, channels, "edge_attr")
    if task.edge_channels is not None:
        return FeatureEncoder(task.edge_channels, channels, name="edge_attr")
    asked = " with edge_features=True" if shared else ""
    message = f"create_model: task must have edge_tokens or edge_channels for {name!r}{asked}"
    if name.startswith("gatedgcn-e"):
        message += f"; without edge features take {name.replace('-e', '', 1)!r}"
    raise ValueError(message)
