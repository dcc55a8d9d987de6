r"""A trained network on a split of its data, or on new graphs: scores and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from fognn.data import NeighborLoader, PackedGraph
from fognn.data.graph_files import check_graphs, read_graphs
from fognn.data.molecules import ATOM_COLUMNS, is_csv, read_molecules, smiles_to_graph
from fognn.data.opening import fill_inputs
from fognn.data.pyg_datasets import PREFIX, open_pyg
from fognn.data.user_data import random_walk_transform
from fognn.models import Task
from fognn.training.config import Config
from fognn.training.data import PLAIN_ZINC, RunData, user_splits
from fognn.training.environment import make_fabric, threads_of
from fognn.training.networks import load_run
from fognn.training.objective import evaluate_model, forward_batch
from fognn.training.run_folder import Result
from fognn.utils.files import user_path, write_whole

Places = dict[str, list[Any]]


@dataclass(frozen=True)
class Predictions:
    r"""The predictions of a network: a row for each graph, node or edge, in the order of the input;
    the edges of a split by their targets.

    Args:
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for images.
        values (array): What is predicted, ``[rows]`` or ``[rows, columns]``: numbers in the unit of
            the targets; the classes, by name where they have names; or 0 and 1.
        probabilities (array, optional): The probability of each class ``[rows, classes]``, of yes
            ``[rows]``, or of yes in each column ``[rows, columns]``; :obj:`None` for numbers.
        names (tuple): The names of the columns, or of the classes.
        places (dict): Where each row belongs: its ``row`` in the csv file and its ``smiles``, or
            the number of its ``graph``, and of its ``node`` or its ``source`` and ``target``, or
            the file of the ``query``.
        truth (array, optional): The targets, for a split of the data; NaN where they are missing.
    """

    task: Task | None
    values: NDArray[Any]
    probabilities: NDArray[np.float32] | None
    names: tuple[str, ...]
    places: Places
    truth: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_frame(self) -> pd.DataFrame:
        r"""Returns a table: places, predictions, probabilities, and the truth if it is known."""
        columns: dict[str, Any] = dict(self.places)
        if self.probabilities is None:
            columns |= _columns("prediction", self.values, self.names)
        elif self.values.ndim == 2:
            columns |= _columns("probability", self.probabilities, self.names)
        else:
            both, names = self.probabilities, self.names
            if both.ndim == 1:
                both, names = np.stack([1 - both, both], axis=1), ("0", "1")
            columns |= {"class": self.values} | _columns("probability", both, names)
        if self.truth is not None:
            columns |= _columns("truth", self.truth, self.names)
        return pd.DataFrame(columns)

    def to_csv(self, path: str | Path) -> None:
        r"""Writes the table of :meth:`to_frame` to a csv file, whole or not at all."""
        with write_whole(user_path(path)) as temporary:
            self.to_frame().to_csv(temporary, index=False, lineterminator="\n", compression=None)


def evaluate(
    run: str | Path | Result,
    split: str = "test",
    checkpoint: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    data: str | Path | None = None,
    batch_size: int | None = None,
) -> dict[str, float]:
    r"""Evaluates a trained run on one of its splits.

    Args:
        run, checkpoint, device, threads, data: As in :func:`fognn.predict`.
        split (str, optional): ``"train"``, ``"val"`` or ``"test"``. (default: :obj:`"test"`)
        batch_size (int, optional): As in the training by default; averages depend on it.

    Returns:
        The loss, and the metric over batches and over items, by name; for few-shot images also the
        half-width of the 95 % interval over episodes, as ``accuracy_interval``.
    """
    net, config, _ = load_run(run, checkpoint)
    opened = RunData(_here(config, device, threads, data, batch_size))
    with threads_of(opened.run.machine):
        fabric = make_fabric(opened.run)
        scores = evaluate_model(fabric.setup(net), opened.loader(split), opened, fabric)
    metric = config.training.metric
    return {name if name == "loss" else f"{metric}_{name}": scores[name] for name in scores}


def _here(
    config: Config, device: str, threads: int | None, data: str | Path | None, size: int | None
) -> Config:
    r"""Returns the configuration of a run on this machine."""
    machine = {"device": device, "threads": threads, "ranks": 1, "compile": False}
    given = {"folder": data and str(data), "batch_size": size}
    return config.with_values(machine | {k: v for k, v in given.items() if v is not None})


def predict(
    run: str | Path | Result,
    source: Any = None,
    *,
    split: str | None = None,
    checkpoint: str | None = None,
    smiles_column: str | None = None,
    skip_bad: bool | None = None,
    batch_size: int = 128,
    device: str = "auto",
    threads: int | None = None,
    data: str | Path | None = None,
    module: Module | None = None,
) -> Predictions:
    r"""Predicts with a trained network.

    .. code-block:: python

        found = fognn.predict("runs/solubility", ["CCO", "c1ccccc1"])
        found.values, found.probabilities, found.names
        found.to_csv("predictions.csv")

    Args:
        run (str or Result): What :func:`fognn.train` returned, a run folder, a checkpoint in one,
            or the name of kept weights, such as ``"zinc/gcn+fog"``, see :func:`fognn.load`.
        source (object): SMILES strings in a list; a csv file of molecules; graphs as
            :func:`fognn.data.read_graphs` reads them; a dataset of PyG by name; or
            :class:`~torch_geometric.data.Data`, a list of them, or a dataset of PyG.
        split (str, optional): In place of ``source``: a split of the data of the run, ``"train"``,
            ``"val"`` or ``"test"``; the result has the truth, too. (default: :obj:`None`)
        checkpoint (str, optional): ``"best"`` or ``"last"``, as in :func:`fognn.load`.
        smiles_column (str, optional): csv file: the column of the SMILES strings, and
        skip_bad (bool, optional): whether to skip lines that cannot be read.
            (default: those of the training)
        batch_size (int, optional): Number of graphs in a batch; of nodes, for a run with sampled
            neighbours. (default: :obj:`128`)
        device, threads (optional): As in :class:`~fognn.training.MachineConfig`.
        data (str, optional): The folder with the files of the datasets, for ``split``.
            (default: that of the training)
        module (torch.nn.Module, optional): The network that :func:`fognn.train` was given.
    """
    if (source is None) == (split is None):
        raise ValueError("predict: source or split must be given, and not both")
    net, config, task = load_run(run, checkpoint, module)
    if task is None:
        raise ValueError(
            f"predict: run must not be of a few-shot network, got {str(run)!r}: use "
            "predict_images, or --support and --query"
        )
    config = _here(config, device, threads, data, batch_size)
    if config.precision.endswith("mixed"):
        config = config.with_values({"precision": "32-true"})  # that of the weights
    if split is not None:
        opened = RunData(config)
        loader = opened.loader(split)
        loader.shuffle = False
        columns = _columns_of_split(opened, split, loader)
    else:
        skip = config.data.skip_bad if skip_bad is None else skip_bad
        graphs, columns = _read(source, config, task, smiles_column or config.data.smiles, skip)
        loader = _loader([_inputs(graph, config, task) for graph in graphs], config)
    outputs, targets, rows, count = [], [], [], 0
    with threads_of(config.machine), torch.no_grad():
        fabric = make_fabric(config)
        model = fabric.setup(net)
        for batch in loader:
            rows.append(_rows(task, batch, count))
            count += batch.num_graphs
            out, target = forward_batch(model, fabric.to_device(batch))
            outputs.append(out.cpu())
            targets.append(target.cpu())
    ends = {name: torch.cat([row[name] for row in rows]).tolist() for name in rows[0]}
    graph = ends.pop("graph")
    places = {name: [values[number] for number in graph] for name, values in columns.items()} | ends
    truth = None if split is None else torch.cat(targets)
    return _predictions(torch.cat(outputs).float(), task, config.training.loss, places, truth)


def _predictions(
    out: Tensor, task: Task, loss: str, places: Places, truth: Tensor | None
) -> Predictions:
    names = tuple(task.names or map(str, range(task.out_channels)))
    probabilities, known = None, None if truth is None else truth.numpy()
    if loss in ("cross_entropy", "balanced_cross_entropy"):
        probabilities, values = out.softmax(1).numpy(), out.argmax(1).numpy()
        if task.names:
            classes = np.array([*task.names, ""], dtype=object)  # -1: no label
            values, known = classes[values], None if known is None else classes[known]
    else:
        out = out[:, 0] if task.out_channels == 1 else out
        values, known = out.numpy(), None if known is None else known.reshape(out.shape)
        if loss == "bce":
            probabilities, values = out.sigmoid().numpy(), (out > 0).long().numpy()
    return Predictions(task, values, probabilities, names, places, known)


def _columns(name: str, values: NDArray[Any], names: Sequence[str]) -> dict[str, Any]:
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{part}": values[:, n] for n, part in enumerate(names)}


def _read(
    source: Any, config: Config, task: Task, column: str, skip_bad: bool
) -> tuple[list[Data], Places]:
    r"""Returns the graphs, and columns with what names each of them."""
    named = isinstance(source, str | Path)
    texts = isinstance(source, Sequence) and all(isinstance(text, str) for text in source)
    if is_csv(source) if named else texts:
        return _molecules(source, config, task, column, skip_bad)
    if not named:
        several = [source] if isinstance(source, Data) else [source[i] for i in range(len(source))]
        graphs = check_graphs("predict: source", several)
    elif str(source).startswith(PREFIX):
        parts = open_pyg(str(source), config.data.folder)
        graphs = check_graphs(str(source), [graph for part in parts.values() for graph in part])
    elif not user_path(source).exists():
        raise ValueError(
            "predict: source must be a file, a folder of graphs, a dataset of PyG, or a list of "
            f"SMILES strings such as ['CCO'], got {source!r}"
        )
    else:
        graphs = read_graphs(source)
    graphs = fill_inputs(graphs, task.node_input)[0]
    return graphs, {"graph": list(range(len(graphs)))}


def _molecules(
    source: Any, config: Config, task: Task, column: str, skip_bad: bool
) -> tuple[list[Data], Places]:
    zinc = config.data.name in ("ZINC", PLAIN_ZINC)
    if task.level != "graph" or not (zinc or task.node_tokens == ATOM_COLUMNS):
        raise ValueError(
            f"predict: source must be graphs, because {config.model.name} was trained on "
            f"{config.data.name} and not on molecules, got {str(source)[:80]!r}"
        )
    features = "zinc" if zinc else "pyg"
    if isinstance(source, str | Path):
        table = read_molecules(source, column, skip_bad=skip_bad, features=features)
        graphs, rows = table.graphs, table.rows
    else:
        graphs = [smiles_to_graph(text, features) for text in source]
        rows = [*range(len(graphs))]
    if not graphs:
        raise ValueError(f"predict: source must have a molecule, got {str(source)[:80]!r}")
    return graphs, {"row": rows, "smiles": [graph.smiles for graph in graphs]}


def _inputs(graph: Data, config: Config, task: Task) -> Data:
    r"""Returns a graph with the inputs of the network only; some graphs may have labels."""
    x, edge_attr = graph.x, graph.edge_attr
    if x is not None and task.node_channels is not None:
        x = x.float()  # bags of words are integers in some files
    if x is not None and config.data.name == PLAIN_ZINC:
        x = torch.zeros_like(x)  # the network was trained with the embedding of atom type 0 only
    rows = 1 if config.data.neighbors is None else graph.num_nodes or 0
    part = Data(x=x, edge_index=graph.edge_index, y=torch.zeros(rows))
    if edge_attr is not None and (task.edge_channels, task.edge_tokens) != (None, None):
        part.edge_attr = edge_attr if task.edge_channels is None else edge_attr.float()
    if task.encodings:
        part = random_walk_transform(task.encodings)(part)
    return part


def _loader(graphs: list[Data], config: Config) -> Any:
    r"""Returns a loader of graphs, or of sampled neighbourhoods as those of a validation split."""
    size, neighbors = config.training.batch_size, config.data.neighbors
    if neighbors is None:
        return DataLoader(graphs, size)
    if len(graphs) != 1:
        raise ValueError(f"predict: source must be one graph, as in training, got {len(graphs)}")
    every = torch.ones(graphs[0].num_nodes or 0, dtype=torch.bool)
    return NeighborLoader(PackedGraph(graphs[0]), every, neighbors, size, seed=config.seed)


def _columns_of_split(data: RunData, split: str, loader: Any) -> Places:
    r"""Returns columns with what names each graph of a split."""
    user = data.user
    if user is None or user.nodes is not None:
        return {"graph": list(range(loader.size if user is None else 1))}
    numbers = user_splits(data.config, user)[split].tolist()
    if not user.rows:
        return {"graph": numbers}
    smiles = [user.smiles[number] for number in numbers]
    return {"row": [user.rows[number] for number in numbers], "smiles": smiles}


def _rows(task: Task, batch: Any, first: int) -> dict[str, Tensor]:
    r"""Returns the graph of each row of a batch, and its node or the ends of its edge."""
    if task.level == "graph":
        return {"graph": torch.arange(batch.num_graphs) + first}
    if "mask" in batch:  # of one graph
        nodes = (batch.n_id if "n_id" in batch else torch.arange(batch.num_nodes))[batch.mask]
        return {"graph": torch.zeros_like(nodes), "node": nodes}
    if task.level == "node":
        node = torch.arange(batch.num_nodes) - batch.ptr[batch.batch]
        return {"graph": batch.batch + first, "node": node}
    source, target = batch.edge_index[0], batch.edge_index[1]
    graph = batch.batch[source]
    first_node = batch.ptr[graph]
    return {"graph": graph + first, "source": source - first_node, "target": target - first_node}
