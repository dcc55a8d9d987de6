r"""Training of a network on a dataset by the paper's protocol."""

import glob
import shutil
import tempfile
from pathlib import Path
from typing import Any

from torch.nn import Module

from fognn.experiments.keep import enter
from fognn.experiments.protocols import command_of, protocol
from fognn.experiments.recipes import recipe as by_recipe
from fognn.experiments.tables import run_folder, runs_of
from fognn.training import Config, Result, fit
from fognn.training.config import setting_name
from fognn.training.fabric import rank, world
from fognn.training.given import give_data, give_module, is_given
from fognn.training.run_folder import check_folder, in_use

__all__ = ["train"]


def train(
    data: Any = None,
    model: str | Module | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    *,
    recipe: str | None = None,
    config: str | Path | None = None,
    results: str | Path | None = None,
    weights: str | Path | None = None,
    logger: str | None = None,
    quiet: bool = False,
    command: str | None = None,
    **overrides: Any,
) -> Result:
    r"""Trains a network on a dataset by the paper's protocol, resumes an interrupted run, or reads
    a finished one.

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
            copy of it is trained, which ``fognn.load(run, module=network)`` loads.
        seed (int, optional): The seed. (default: :obj:`0`)
        folder (str, optional): The run folder. (default: see
            :func:`fognn.experiments.tables.run_folder`; a run with fewer epochs there is resumed
            in a
            copy)
        recipe (str, optional): The name of a recipe in :obj:`fognn.experiments.recipes.RECIPES`,
        such as
            ``"modern"``, whose settings come before those of the paper's protocol.
            (default: :obj:`None`)
        config (str, optional): A ``config.yaml`` to start from, instead of ``data`` and
            ``model``. (default: :obj:`None`)
        results (str, optional): The folder of the ledgers. If given, the finished run is added to
            the ledger of its table, or to ``runs.jsonl``. (default: :obj:`None`)
        weights (str, optional): The folder in which the weights of the paper's rows are kept, if
            ``results`` is given. (default: ``weights`` beside ``results``)
        logger (str, optional): ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``, in addition to
            ``metrics.csv``. (default: :obj:`None`)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        command (str, optional): The command that repeats the run, for messages and
            ``result.json``. (default: see :func:`fognn.training.fit`)
        **overrides (optional): Settings of :class:`~fognn.training.Config`, by their dotted names
            (``**{"training.lr": 1e-3}``), or by the last part if that is unique (``lr=1e-3``).

    Returns:
        The result.
    """
    changes = {setting_name(name): value for name, value in overrides.items()}
    if changes.get("data.folder") is not None:
        changes["data.folder"] = str(changes["data.folder"])
    if data is not None and not isinstance(data, str | Path):
        data = give_data(data)
    if isinstance(model, Module):
        model = give_module(model)
    if config is not None:
        if data is not None or model is not None:
            raise ValueError(
                f"train: config must be given without data and model, got data={data!r} and "
                f"model={model!r}"
            )
        if recipe is not None:
            raise ValueError(
                f"train: recipe must be None with config, which has all settings, got {recipe!r}"
            )
        if seed is not None:
            changes["seed"] = seed
        run = Config.read(Path(config)).with_values(changes)
    elif data is None or model is None:
        raise ValueError(
            f"train: data and model must be given, or config, got data={data!r} and model={model!r}"
        )
    elif recipe is not None:
        run = by_recipe(recipe, str(data), model, seed or 0, changes)
    else:
        run = protocol(str(data), model, seed or 0, changes)
    if command is None and (is_given(run.data.name) or is_given(run.model.name)):
        command = command_of(run)
    result = fit(run, folder or _default_folder(run), command, quiet, logger)
    if results is not None and rank() == 0:
        enter(result.folder, results, weights)
    return result


def _default_folder(config: Config) -> Path:
    r"""Returns the default folder of a run. If it does not exist, but that of a run with fewer
    epochs and otherwise the same settings does, copies its checkpoints, so that only the other
    epochs are trained."""
    folder = run_folder(config)
    # With torchrun, another rank could look between the copy and the first new epoch.
    if folder.exists() or runs_of(config) or world()[0] > 1:
        return folder
    shorter = {}
    name = glob.escape(folder.name.removesuffix(config.digest()))
    for file in folder.parent.glob(f"{name}*/config.yaml"):
        try:
            check_folder(file.parent, config, longer=True)
        except ValueError:  # another run
            continue
        if not in_use(file.parent):
            shorter[file.parent] = Config.read(file).training.epochs
    if shorter:
        source = max(shorter, key=lambda path: shorter[path])
        skipped = shutil.ignore_patterns("result.json", ".*")
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=folder.parent) as temporary:
            copied = shutil.copytree(source, Path(temporary) / "run", ignore=skipped)
            copied.rename(folder)
    return folder
