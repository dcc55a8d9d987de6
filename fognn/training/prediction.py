r"""Predictions of a trained network for new graphs, as a csv file."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

from fognn.data import NeighborLoader, PackedGraph
from fognn.data.encodings import random_walks
from fognn.data.graph_files import read_graphs
from fognn.data.molecules import ATOM_COLUMNS
from fognn.data.own_data import fill_inputs
from fognn.data.pyg_datasets import is_pyg_name, open_pyg
from fognn.data.single_graph import is_single_graph, read_single_graph, single_graph
from fognn.data.smiles_csv import read_molecules
from fognn.models import Task
from fognn.training.busy_cores import BusyCores
from fognn.training.checkpoint import load_run
from fognn.training.config import Config, MachineConfig
from fognn.training.data import PLAIN_ZINC
from fognn.training.environment import device_of
from fognn.training.evaluation import answer
from fognn.training.fabric import threads_of
from fognn.training.out_of_memory import prediction_too_large
from fognn.utils import checks
from fognn.utils.files import write_whole
from fognn.utils.memory import memory_errors, source_too_large

__all__ = ["predict", "predict_graphs", "predict_nodes"]


def predict(
    run: str | Path,
    source: str | Path,
    output: str | Path,
    checkpoint: str | None = None,
    smiles_column: str | None = None,
    skip_bad: bool = False,
    batch_size: int = 128,
    device: str = "auto",
    threads: int | None = None,
) -> int:
    r"""Writes the predictions of a trained network for new graphs to a csv file: one line for each
    graph, node or edge, depending on the network's task, in the order of the input.

    Molecules are numbered by ``row``, counted from 0 without the header, as in the input: lines
    that are skipped leave gaps. Other graphs are numbered by ``graph``, from 0.

    * Predicted values are in the column ``prediction``, in the unit of the targets; if there are
      several, in ``prediction_NAME``.
    * Predicted classes are in ``class``, and their probabilities in ``probability_NAME``.
    * For several yes/no columns, the probabilities of a yes are in ``probability_NAME``.

    A name is that of the column or class in the data of the training, or its number from 0.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights, such as
            ``"zinc/gcn+fog"``, see :func:`fognn.load`.
        source (str): A csv file of molecules; graphs as :func:`fognn.data.read_graphs` or
            :func:`fognn.data.read_single_graph` takes them; or a dataset of PyG by name, as
            :func:`fognn.data.open_pyg` takes it.
        output (str): The csv file to write.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`;
            for kept weights the one that is kept, see :func:`fognn.load`)
        smiles_column (str, optional): csv file: the column of the SMILES strings.
            (default: that of the training)
        skip_bad (bool, optional): csv file: if set to :obj:`True`, skips lines that cannot be read.
            (default: :obj:`False`)
        batch_size (int, optional): Number of graphs in a batch; of nodes, for a run with sampled
            neighbours. (default: :obj:`128`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
        threads (int, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`None`)

    Returns:
        The number of lines written, without the header.
    """
    checks.int_in_range("predict", "batch_size", batch_size, 1)
    machine = MachineConfig(threads=threads)
    net, config, task = load_run(run, checkpoint)
    if task is None:
        raise ValueError(
            f"run must not be of a few-shot network, which classifies images, got {str(run)!r}: "
            f"use fognn predict RUN --support DIR --query IMAGE (fognn.training.predict_images), "
            f"or fognn.load(run) for the network itself"
        )
    with memory_errors(source_too_large(source)):
        graphs, rows = _read(source, config, task, smiles_column, skip_bad)
    if config.data.name == PLAIN_ZINC:
        # The network was trained with the embedding of atom type 0 only.
        for graph in graphs:
            graph.x = torch.zeros_like(graph.x)
    lines, neighbors = 0, config.data.neighbors
    place = device_of(device)
    largest = max(graph.num_nodes or 0 for graph in graphs) if neighbors else len(graphs)
    with (
        threads_of(machine),
        memory_errors(prediction_too_large(min(batch_size, largest), place)),
        _naming(source),
        write_whole(Path(output)) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_places(task, graphs[0]), *_names(task, config.training.loss)])
        outputs: Iterable[Tensor] = predict_graphs(net, graphs, task, batch_size, device)
        if neighbors is not None:
            outputs = (
                predict_nodes(net, graph, task, neighbors, batch_size, device, config.seed)
                for graph in graphs
            )
        outputs = BusyCores.watch(outputs, place)
        for number, graph, output_ in zip(rows, graphs, outputs, strict=True):
            for names, row in zip(_rows(task, number, graph), output_, strict=True):
                writer.writerow([*names, *_values(row, task, config.training.loss)])
                lines += 1
    return lines


@contextmanager
def _naming(source: str | Path) -> Iterator[None]:
    r"""Names the input in the errors of a network that gets other features than in training."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _read(
    source: str | Path, config: Config, task: Task, smiles_column: str | None, skip_bad: bool
) -> tuple[list[Data], Sequence[int]]:
    r"""Returns the graphs, and their numbers in the input."""
    if is_pyg_name(str(source)) or not str(source).lower().endswith(".csv"):
        graphs = _read_graphs(source, config)
        return fill_inputs(graphs, task.node_input)[0], range(len(graphs))
    of_zinc = config.data.name in ("ZINC", PLAIN_ZINC)
    if task.level != "graph" or not (of_zinc or task.node_tokens == ATOM_COLUMNS):
        raise ValueError(
            f"source must be a .pt or .npz file of graphs, because {config.model.name} was "
            f"trained on {config.data.name} and not on molecules, got {str(source)!r}"
        )
    table = read_molecules(
        source,
        smiles_column or config.data.smiles,
        skip_bad=skip_bad,
        features="zinc" if of_zinc else "pyg",
    )
    if not table.graphs:
        raise ValueError(f"source must have at least one molecule, got {str(source)!r}")
    return table.graphs, table.rows


def _read_graphs(source: str | Path, config: Config) -> list[Data]:
    if is_pyg_name(str(source)):
        parts = open_pyg(str(source), config.data.folder)
        graphs = [graph for part in parts.values() for graph in part]
        if len(graphs) == 1:
            return [single_graph(str(source), graphs[0].to_dict(), labels=False)]
        return graphs
    if is_single_graph(source):
        return [read_single_graph(source, labels=False)]
    return read_graphs(source)


def predict_nodes(
    net: Module,
    graph: Data,
    task: Task,
    neighbors: Sequence[int],
    batch_size: int = 128,
    device: str = "auto",
    seed: int = 0,
) -> Tensor:
    r"""Returns the outputs of a network for all nodes of a graph, ``[num_nodes, out]``, from
    sampled neighbourhoods, as :class:`~fognn.data.NeighborLoader` samples them for a validation
    split.

    Args:
        net (torch.nn.Module): The network, in evaluation mode.
        graph (Data): The graph.
        task (Task): The inputs and outputs of the network.
        neighbors (sequence of int): The largest number of neighbours in each hop.
        batch_size (int, optional): Number of nodes in a batch. (default: :obj:`128`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
        seed (int, optional): The seed of the samples. (default: :obj:`0`)
    """
    place = torch.device(device_of(device))
    net.to(place)
    inputs = _inputs(graph, task, next(net.parameters()).dtype)
    inputs.y = torch.zeros(graph.num_nodes or 0)
    every = torch.ones(graph.num_nodes or 0, dtype=torch.bool)
    loader = NeighborLoader(PackedGraph(inputs), every, neighbors, batch_size, seed=seed)
    with torch.no_grad():
        return torch.cat([answer(net, batch.to(place))[0].cpu() for batch in loader])


def predict_graphs(
    net: Module, graphs: list[Data], task: Task, batch_size: int = 128, device: str = "auto"
) -> Iterator[Tensor]:
    r"""Yields the outputs of a network for each graph: ``[1, out]``, ``[num_nodes, out]`` or
    ``[num_edges, out]``.

    Args:
        net (torch.nn.Module): The network, in evaluation mode.
        graphs (list): The graphs.
        task (Task): The inputs and outputs of the network.
        batch_size (int, optional): Number of graphs in a batch. (default: :obj:`128`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
    """
    place = torch.device(device_of(device))
    net.to(place)
    dtype = next(net.parameters()).dtype
    sizes = {"graph": lambda g: 1, "node": lambda g: g.num_nodes, "edge": lambda g: g.num_edges}
    with torch.no_grad():
        for first in range(0, len(graphs), batch_size):
            some = graphs[first : first + batch_size]
            batch: Any = Batch.from_data_list([_inputs(graph, task, dtype) for graph in some])
            out, _ = answer(net, batch.to(place))
            yield from out.cpu().split([sizes[task.level](graph) for graph in some])


def _inputs(graph: Data, task: Task, dtype: torch.dtype) -> Data:
    r"""Returns a graph with the inputs of the network only; some graphs may have labels."""
    x, edge_attr = graph.x, graph.edge_attr
    reads_edges = task.edge_tokens is not None or task.edge_channels is not None
    part = Data(x=_cast(x, dtype), edge_index=graph.edge_index, y=torch.zeros(1))
    if reads_edges and edge_attr is not None:
        part.edge_attr = _cast(edge_attr, dtype)
    if task.encodings:
        part.rwse = random_walks(part, task.encodings).to(dtype)
    return part


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _places(task: Task, graph: Data) -> list[str]:
    if task.level == "graph":
        return ["row", "smiles"] if "smiles" in graph else ["graph"]
    return ["graph", "node"] if task.level == "node" else ["graph", "source", "target"]


def _rows(task: Task, number: int, graph: Data) -> Iterator[list[Any]]:
    if task.level == "graph":
        yield [number, graph.smiles] if "smiles" in graph else [number]
    elif task.level == "node":
        yield from ([number, node] for node in range(graph.num_nodes or 0))
    else:
        edges: Any = graph.edge_index
        yield from ([number, *edge] for edge in edges.t().tolist())


def _names(task: Task, loss: str) -> list[str]:
    several = task.names or range(task.out_channels)
    if loss in ("l1", "mse"):
        return ["prediction"] if task.out_channels == 1 else [f"prediction_{n}" for n in several]
    if loss == "bce":
        if task.out_channels > 1:
            return [f"probability_{name}" for name in several]
        several = range(2)
    return ["class", *(f"probability_{name}" for name in several)]


def _values(row: Tensor, task: Task, loss: str) -> list[Any]:
    if loss in ("l1", "mse"):
        return row.tolist()
    if loss == "bce":
        yes = row.sigmoid()
        if task.out_channels > 1:
            return yes.tolist()
        return [int(yes > 0.5), float(1 - yes), float(yes)]
    best = int(row.argmax())
    return [task.names[best] if task.names else best, *row.softmax(0).tolist()]
