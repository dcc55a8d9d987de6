r"""Training by the paper's protocol, in one call."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fognn.paper.protocols import protocol
from fognn.training import Config, Result, fit
from fognn.training.own_data import is_file

__all__ = ["run_folder", "train"]


def train(
    data: str | None = None,
    model: str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    *,
    epochs: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    batch_size: int | None = None,
    fraction: float | None = None,
    fold: int | None = None,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    ranks: int | None = None,
    compile: bool | None = None,
    data_folder: str | Path | None = None,
    values: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    logger: str | None = None,
    quiet: bool = False,
    command: str | None = None,
) -> Result:
    r"""Trains a network on a dataset by the paper's protocol, goes on with a run that was
    interrupted, or reads one that is finished.

    .. code-block:: python

        result = fognn.train("zinc", "gcn+fog", seed=0)
        result.test["last"]["items"]  # the MAE on the test split
        net = fognn.load(result.folder)

    Args:
        data: A dataset, or a file of one's own: a csv file of molecules (``values`` name the column
            to learn: ``{"data.target": "logp"}``), a file or a folder of graphs.
        model: A network of :func:`fognn.list_models`.
        seed: The seed. (default: 0)
        folder: The run folder. (default: see :func:`run_folder`)
        epochs, lr, weight_decay, batch_size: As in :class:`~fognn.training.TrainingConfig`.
        fraction, fold: As in :class:`~fognn.training.DataConfig`.
        precision: As in :class:`~fognn.training.Config`.
        device, threads, ranks, compile: As in :class:`~fognn.training.MachineConfig`.
        data_folder: The folder with real files, else ``$FOGNN_DATA``.
        values: Any setting by its dotted name, as ``{"model.h1": 8}``.
        config: A ``config.yaml`` to start from, in place of ``data`` and ``model``.
        logger: ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``, beside ``metrics.csv``.
        quiet: Show no progress.
        command: How a user repeats it, for messages and for ``result.json``.
    """
    given = {
        "training.epochs": epochs,
        "training.lr": lr,
        "training.weight_decay": weight_decay,
        "training.batch_size": batch_size,
        "data.fraction": fraction,
        "data.fold": fold,
        "data.folder": None if data_folder is None else str(data_folder),
        "precision": precision,
        "machine.device": device,
        "machine.threads": threads,
        "machine.ranks": ranks,
        "machine.compile": compile,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    changes |= values or {}
    if config is not None:
        if data is not None or model is not None:
            raise ValueError("train: config must be given alone, without data and model")
        if seed is not None:
            changes["seed"] = seed
        run = Config.read(Path(config)).with_values(changes)
    elif data is None or model is None:
        raise ValueError("train: data and model must be given, or a config")
    else:
        run = protocol(data, model, seed or 0, changes)
    return fit(run, folder or run_folder(run), command, quiet, logger)


def run_folder(config: Config) -> Path:
    r"""Where a run goes if nobody says: ``runs/zinc-gcn+fog-seed0``; for a run that differs from
    the paper's, and for one on a file of one's own, with a digest of its settings behind it."""
    own = is_file(config.data)
    data = Path(config.data.name).stem if own else config.data.name
    name = f"{data}-{config.model.name}-seed{config.seed}"
    if own or protocol(data, config.model.name, config.seed).identity() != config.identity():
        name += f"-{config.digest()}"
    return Path("runs") / name.lower()
