"""The registry of networks."""

from fnmatch import fnmatch
from typing import Any

from torch.nn import Module

from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import (
    ConstantEncoder,
    FeatureEncoder,
    GraphNet,
    TokenEncoder,
    WalkEncoder,
)
from fognn.models.heads import JumpingHead, MLPHead, OutputScale
from fognn.models.hosts import BUILT_IN, FOG_SETTINGS, HOSTS, NET_SETTINGS, FOGSettings, Host
from fognn.models.task import TASKS, Task
from fognn.nn import Block, FeedForward, WithFOG
from fognn.utils import checks

__all__ = [
    "BUILT_IN",
    "FEW_SHOT",
    "FOG_SETTINGS",
    "HOSTS",
    "count_parameters",
    "create_model",
    "has_fog",
    "head_of",
    "list_models",
    "new_model",
]

FEW_SHOT = {f"fewshot-{kind}": kind for kind in ("fog", "gnn", "gnn+fog")}


def count_parameters(module: Module) -> int:
    r"""Returns the number of trainable parameters."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


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
            ``readout`` (``"mean"`` or ``"sum"`` over a graph's nodes; that of the task, or else the
            sum for GIN and the mean for the others), ``head`` (``"mlp"``,
            :class:`fognn.models.heads.MLPHead`, or for GIN ``"jumping"``,
            :class:`fognn.models.heads.JumpingHead`); beside a host:
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

        checks.known("create_model", "model", str(name).lower(), list_models())
        return pretrained_model(name, task, settings)
    return new_model(name, task, **settings)


def new_model(name: str, task: str | Task | None = None, **settings: Any) -> Module:
    r"""Builds a network with new weights, see :func:`create_model`."""
    key = name.lower() if isinstance(name, str) else name
    checks.known("create_model", "model", key, list_models())
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
    ffn: float | None = None,
    edge_features: bool = False,
    readout: str | None = None,
    head: str | None = None,
    head_channels: int | None = None,
    **options: Any,
) -> GraphNet:
    checks.positive_int("create_model", "channels", channels)
    checks.positive_int("create_model", "layers", layers)
    host = None if name == "fog" else HOSTS[name.removesuffix("+fog")]
    jumping = head_of(host, head) == "jumping"
    if jumping and head_channels is not None:
        options["head_channels"] = head_channels  # which no option of such a host is
    fog = _fog(name, options)
    p = 0 if fog is None else _fog_channels(name, channels, fog.fog_channels)
    _check_options(name, host, jumping, options)
    if readout is not None and task.level != "graph":
        raise ValueError(
            f"create_model: readout must be None for outputs on {task.level}s, got {readout!r}"
        )
    readout = readout or task.readout or ("sum" if host and host.jumping else "mean")
    checks.one_of("create_model", "readout", readout, ("mean", "sum"))
    edges = host.edges if host else "none"
    shared = edge_features and edges == "none"  # no layer returns new ones
    if edge_features:
        _check_edge_features(name, host)
        edges = "features"

    blocks = []
    for layer in range(layers):
        edge_dim = channels if edge_features else None
        conv: Module | None = None
        if host is not None:
            own = {"edge_dim": edge_dim, "beside_fog": p > 0, "last": layer == layers - 1}
            own = {key: value for key, value in own.items() if key in host.given}
            conv = host.conv(channels, channels - p, **own, **options)
        if fog is not None:
            of_fog = fog.layer(channels, p, edge_dim)
            conv = of_fog if conv is None else WithFOG(conv, of_fog)
        assert conv is not None
        # The benchmark's GraphSAGE has its activation inside, before the norm.
        act = None if options.get("benchmark") else (host.act if host else "relu")
        after = FeedForward(channels, ffn, dropout=dropout) if ffn else None
        blocks.append(Block(conv, channels, act, dropout=dropout, feed_forward=after))

    ends: MLPHead | JumpingHead
    if jumping:
        ends = JumpingHead(channels, task.out_channels, task.level, layers + 1, readout)
    else:
        ends = MLPHead(channels, task.out_channels, task.level, readout, head_channels)
    edge_encoder = _edge_encoder(name, task, channels, edges)
    scale = OutputScale(task.mean, task.std) if task.mean and task.std else None
    walks = WalkEncoder(task.encodings, channels) if task.encodings else None
    encoder: Module
    if task.node_tokens is not None:
        encoder = TokenEncoder(task.node_tokens, channels)
    else:
        assert task.node_channels is not None
        encoder = FeatureEncoder(task.node_channels, channels)
    return GraphNet(encoder, blocks, ends, edge_encoder, scale, shared, walks)


def _fog(name: str, options: dict[str, Any]) -> FOGSettings | None:
    r"""Returns the settings of FOG, which are removed from the others; :obj:`None` without FOG."""
    given = {key: options.pop(key) for key in FOG_SETTINGS if key in options}
    given = {key: value for key, value in given.items() if value is not None}
    if has_fog(name):
        return FOGSettings(**given)
    for key, value in given.items():
        raise ValueError(
            f"create_model: {key} must be None for {name!r}, which has no FOG, got {value!r}"
        )
    return None


def _fog_channels(name: str, channels: int, p: int | None) -> int:
    if name == "fog":
        if p not in (None, channels):
            raise ValueError(
                f"create_model: fog_channels must be {channels}, like channels, for 'fog' alone, "
                f"got {p}"
            )
        return channels
    p = channels // 2 if p is None else p
    checks.int_in_range("create_model", "fog_channels", p, 1, channels)
    return p


def _check_options(name: str, host: Host | None, jumping: bool, options: dict[str, Any]) -> None:
    allowed = host.options if host else ()
    for option in options:
        if option not in allowed:
            own = [*allowed, *NET_SETTINGS, *(FOG_SETTINGS if has_fog(name) else ())]
            own += [] if jumping else ["head_channels"]
            raise ValueError(
                f"create_model: {name!r} has no setting {option!r}; known: {', '.join(own)}"
            )


def head_of(host: Host | None, head: str | None = None) -> str:
    r"""Returns the head of a network: the one that is given, or that of its host."""
    allowed = ("jumping", "mlp") if host is not None and host.jumping else ("mlp",)
    if head is not None:
        checks.one_of("create_model", "head", head, allowed)
    return head or allowed[0]


def _check_edge_features(name: str, host: Host | None) -> None:
    if host is None or "edge_dim" in host.given or host.edges == "features":
        return
    hint = "its layer takes none (edges of register_host)"
    if host.edges == "constant":
        other = name.replace("gatedgcn", "gatedgcn-e", 1)
        hint = f"{other!r} is that network with edge features"
    raise ValueError(f"create_model: edge_features must be False for {name!r}, got True: {hint}")


def _edge_encoder(name: str, task: Task, channels: int, edges: str) -> Module | None:
    if edges == "none":
        return None
    if edges == "constant":
        return ConstantEncoder(channels)
    if task.edge_tokens is not None:
        return TokenEncoder(task.edge_tokens, channels, "edge_attr")
    if task.edge_channels is not None:
        return FeatureEncoder(task.edge_channels, channels, "edge_attr")
    raise ValueError(
        f"create_model: task must have edge_tokens or edge_channels for {name!r} with edge features"
    )
