"""The registry of networks: what goes in and out of one, and how it is built by its name."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from functools import partial
from typing import Any

from torch.nn import Module

from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import ConstantEncoder, GraphNet, WalkEncoder, new_encoder
from fognn.models.heads import Head, JumpingHead, MLPHead, OutputScale
from fognn.models.hosts import FOG_SETTINGS, HOSTS, NET_SETTINGS, Host
from fognn.nn import FOG, Block, FeedForward, FOGControl, WithFOG
from fognn.utils import checks


@dataclass(frozen=True)
class Task:
    r"""The inputs and outputs of a network.

    Args:
        level (str): The level of the outputs: ``"node"``, ``"edge"`` or ``"graph"``.
        out_channels (int): Size of each output: the number of classes or of values.
        node_tokens (int or tuple, optional): Number of node tokens, if nodes are tokens; one number
            for each column, if they have several. (default: :obj:`None`)
        node_channels (int, optional): Size of node features, if nodes have features.
            (default: :obj:`None`)
        edge_tokens (int or tuple, optional): The same for edges. (default: :obj:`None`)
        edge_channels (int, optional): Size of edge features, if edges have features.
            (default: :obj:`None`)
        readout (str, optional): Pooling of a graph's nodes, ``"mean"`` or ``"sum"``.
            (default: that of the network)
        node_input (str, optional): The node features: ``"x"``; or what takes their place in graphs
            without any, ``"degree"`` (the logarithm of 1 + in-degree) or ``"constant"`` (1).
            (default: :obj:`"x"`)
        mean (tuple, optional): Mean of each value over the training targets. The network predicts
            standardised values, and its last step returns them to the unit of the targets.
            (default: :obj:`None`)
        std (tuple, optional): Standard deviation of each value, given with ``mean``.
            (default: :obj:`None`)
        names (tuple, optional): Names of the values, or of the classes. (default: :obj:`()`)
        encodings (int, optional): Number of columns of the random-walk encodings of each node,
            which the network adds to the encoded nodes; 0 if there are none. (default: :obj:`0`)
    """

    level: str
    out_channels: int
    node_tokens: int | tuple[int, ...] | None = None
    node_channels: int | None = None
    edge_tokens: int | tuple[int, ...] | None = None
    edge_channels: int | None = None
    readout: str | None = None
    node_input: str = "x"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    encodings: int = 0

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, list):  # of a JSON file
                object.__setattr__(self, name, tuple(value))
        checks.one_of("Task", "level", self.level, ("node", "edge", "graph"))
        if (self.node_tokens is None) == (self.node_channels is None):
            raise ValueError(
                "Task: exactly one of node_tokens and node_channels must be given, got "
                f"{self.node_tokens} and {self.node_channels}"
            )
        if self.edge_tokens is not None and self.edge_channels is not None:
            raise ValueError("Task: at most one of edge_tokens and edge_channels must be given")

    def to_dict(self) -> dict[str, Any]:
        r"""Returns the fields that are not at their default; ``Task(**fields)`` is the task."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in values if value != field.default}


TASKS = {
    "pattern": Task("node", 2, node_tokens=3),
    "cluster": Task("node", 6, node_tokens=7),
    "zinc": Task("graph", 1, node_tokens=28, edge_tokens=4),
    "tsp": Task("edge", 2, node_channels=2, edge_channels=1),
    "imdb-multi": Task("graph", 3, node_channels=1, readout="sum"),
}
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
    """Whether a network on graphs has FOG, by its name."""
    name = name.lower() if isinstance(name, str) else ""
    return name.endswith("fog") and not name.startswith("fewshot-")


def host_of(name: str) -> Host | None:
    """Returns the host of a network, by its name; :obj:`None` for FOG alone."""
    return HOSTS.get(name.removesuffix("+fog"))


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
            ``head_channels`` (the first hidden width of the MLP, half of its input); and the host's
            settings: ``norm`` (GCN), ``heads`` (GAT, of all layers but the last; GATv2, of all
            layers), ``gate`` (GatedGCN), ``aggr`` and ``benchmark`` (GraphSAGE), ``hidden`` (GIN,
            the inner width of each layer), ``degrees`` (PNA, the number of training nodes of each
            in-degree, from 0). For few-shot networks: the arguments of :class:`FewShotNet`.
    """
    if pretrained:
        from fognn.models.weights import pretrained_model  # which imports this module

        checks.known("create_model", "model", str(name).lower(), list_models())
        return pretrained_model(name, task, settings)
    return new_model(name, task, **settings)


def new_model(name: str, task: str | Task | None = None, **settings: Any) -> Module:
    """Builds a network with new weights, see :func:`create_model`."""
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
    **others: Any,
) -> GraphNet:
    host = host_of(name)
    checks.positive_int("create_model", "channels", channels)
    checks.positive_int("create_model", "layers", layers)
    jumping = head_of(host, head) == "jumping"
    options = {key: value for key, value in others.items() if value is not None}
    known = [*(host.options if host else ()), *NET_SETTINGS]
    known += [*(FOG_SETTINGS if has_fog(name) else ()), *([] if jumping else ["head_channels"])]
    for option in options:
        if option not in known:
            raise ValueError(
                f"create_model: {name!r} has no setting {option!r}; known: {', '.join(known)}"
            )
    head_channels = options.pop("head_channels", None)
    fog = {key.removeprefix("fog_"): options.pop(key) for key in FOG_SETTINGS if key in options}
    kind = fog.pop("kind", "kron")
    new_fog: Callable[..., FOG] = FOG if kind == "kron" else partial(FOGControl, kind=kind)
    p = 0
    if has_fog(name):
        p = fog.pop("channels", channels // 2 if host else channels)
        if host:
            checks.int_in_range("create_model", "fog_channels", p, 1, channels)
        elif p != channels:
            raise ValueError(
                f"create_model: fog_channels must be {channels}, like channels, for 'fog' alone, "
                f"got {p}"
            )
    if readout is not None and task.level != "graph":
        raise ValueError(
            f"create_model: readout must be None for outputs on {task.level}s, got {readout!r}"
        )
    readout = readout or task.readout or ("sum" if host and host.jumping else "mean")
    checks.one_of("create_model", "readout", readout, ("mean", "sum"))
    edges = host.edges if host else "none"
    if edge_features and host and not host.takes_edge_features:
        hint = "; 'gatedgcn-e' takes them" if edges == "constant" else ""
        raise ValueError(f"create_model: edge_features must be False for {name!r}, got True{hint}")
    reads_edges = edge_features or edges == "features"
    if reads_edges and task.edge_tokens is None and task.edge_channels is None:
        raise ValueError(
            f"create_model: task must have edge_tokens or edge_channels for {name!r} with edge "
            "features"
        )
    edge_dim = channels if edge_features else None

    blocks = []
    for layer in range(layers):
        conv: Module | None = None
        if host is not None:
            given = {"edge_dim": edge_dim, "last": layer == layers - 1}
            given = {key: value for key, value in given.items() if key in host.given}
            conv = host.conv(channels, channels - p, **given, **options)
        if p:
            of_fog = new_fog(channels, p, edge_dim=edge_dim, **fog)
            conv = WithFOG(conv, of_fog) if conv is not None else of_fog
        assert conv is not None
        # The benchmark's GraphSAGE has its activation inside, before the norm.
        act = None if options.get("benchmark") else (host.act if host else "relu")
        after = FeedForward(channels, ffn, dropout=dropout) if ffn else None
        blocks.append(Block(conv, channels, act, dropout=dropout, feed_forward=after))

    if jumping:
        ends: Head = JumpingHead(channels, task.out_channels, task.level, layers + 1, readout)
    else:
        ends = MLPHead(channels, task.out_channels, task.level, readout, head_channels)
    edge_encoder: Module | None = None
    if edges == "constant":
        edge_encoder = ConstantEncoder(channels)
    elif reads_edges:
        edge_encoder = new_encoder(task.edge_tokens, task.edge_channels, channels, "edge_attr")
    scale = OutputScale(task.mean, task.std) if task.mean and task.std else None
    walks = WalkEncoder(task.encodings, channels) if task.encodings else None
    encoder = new_encoder(task.node_tokens, task.node_channels, channels, "x")
    shared = edge_features and edges == "none"  # no layer returns new ones
    return GraphNet(encoder, blocks, ends, edge_encoder, scale, shared, walks)


def head_of(host: Host | None, head: str | None = None) -> str:
    """Returns the head of a network: the one that is given, or that of its host."""
    allowed = ("jumping", "mlp") if host is not None and host.jumping else ("mlp",)
    if head is not None:
        checks.one_of("create_model", "head", head, allowed)
    return head or allowed[0]
