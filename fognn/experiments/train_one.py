r"""Training of a network on a dataset by the paper's protocol."""

from pathlib import Path
from typing import Any

from torch.nn import Module

from fognn.data import open_user_data
from fognn.experiments.protocols import protocol
from fognn.experiments.protocols import recipe as by_recipe
from fognn.experiments.tables import run_folder
from fognn.training import Config, Result, fit
from fognn.training.config import setting_name
from fognn.training.networks import module_name

__all__ = ["train"]


def train(
    data: Any = None,
    model: str | Module | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    *,
    keep_weights: bool = False,
    recipe: str | None = None,
    config: str | Path | None = None,
    logger: str | None = None,
    quiet: bool = False,
    again: bool = False,
    command: str | None = None,
    **overrides: Any,
) -> Result:
    r"""Trains a network on a dataset by the paper's protocol, resumes an interrupted run, or reads
    a finished one; returns the result. Writes its run folder only.

    .. code-block:: python

        result = fognn.train("zinc", "gcn+fog", seed=0, epochs=100, **{"model.channels": 64})
        result.metrics["test/mae"]
        net = fognn.load(result.folder)

    Args:
        data (str or object): The name of a dataset (``"pyg:CLASS/NAME"`` for one of PyG); your own
            data: a csv file of molecules (``target`` is the column to learn), or a file or folder
            of graphs; or a Python object: a PyG dataset or a list of
            :class:`~torch_geometric.data.Data`, one graph with masks, or a dict with a dataset for
            each of ``"train"``, ``"val"`` and ``"test"``.
        model (str or torch.nn.Module): The name of a network in :func:`fognn.list_models`, or your
            own network, whose :meth:`forward` takes some of ``x``, ``edge_index``, ``edge_attr``,
            ``batch``, ``batch_size`` and ``rwse``, or one :class:`~torch_geometric.data.Data`. A
            copy of it is trained, which ``fognn.load(run, module=network)`` loads. The seed sets
            its weights by :meth:`reset_parameters` of its parts.
        seed (int, optional): The seed. (default: :obj:`0`)
        folder (str, optional): The run folder. (default: see
            :func:`fognn.experiments.tables.run_folder`)
        keep_weights (bool, optional): If set to :obj:`True`, your own network starts with the
            weights that it has. (default: :obj:`False`)
        recipe (str, optional): ``"modern"``, whose settings come before the protocol's.
        config (str, optional): A ``config.yaml`` to start from, instead of ``data`` and ``model``.
        logger (str, optional): ``"tensorboard"``, in addition to ``metrics.csv``.
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        again (bool, optional): Trains a run anew that the folder has. (default: :obj:`False`)
        command (str, optional): The command that repeats the run, for messages and
            ``result.json``. (default: see :func:`fognn.training.fit`)
        **overrides (optional): Settings of :class:`~fognn.training.Config`, by their dotted names
            (``**{"training.lr": 1e-3}``), or by the last part if that is unique (``lr=1e-3``).
    """
    changes = {setting_name(name): value for name, value in overrides.items()}
    if changes.get("data.folder") is not None:
        changes["data.folder"] = str(changes["data.folder"])
    opened, module = None, None
    if data is not None and not isinstance(data, str | Path):
        opened = open_user_data(data, task=changes.get("data.task", "auto"))
        data = opened.name
    if model is not None and not isinstance(model, str):
        module, model = model, module_name(model, keep_weights, folder is not None)
    if keep_weights:
        if module is None:
            raise ValueError("train: keep_weights must be False for a network by name, got True")
        changes["model.keep_weights"] = True
    if config is not None:
        if data is not None or model is not None or recipe is not None:
            raise ValueError("train: config must be given without data, model and recipe")
        if seed is not None:
            changes["seed"] = seed
        run = Config.read(Path(config)).with_values(changes)
    elif data is None or model is None:
        raise ValueError(
            f"train: data and model must be given, or config, got data={data!r} and model={model!r}"
        )
    elif recipe is not None:
        run = by_recipe(recipe, str(data), str(model), seed or 0, changes, opened)
    else:
        run = protocol(str(data), str(model), seed or 0, changes, opened)
    return fit(
        run,
        folder or run_folder(run),
        data=opened,
        module=module,
        command=command,
        quiet=quiet,
        logger=logger,
        again=again,
    )
