r"""Training of one run by the paper's protocol, in one call."""

from pathlib import Path
from typing import Any

from fognn.paper.ledger import enter
from fognn.paper.protocols import protocol
from fognn.paper.tables import run_folder
from fognn.training import Config, Result, fit
from fognn.training.config import setting_name
from fognn.training.fabric import rank

__all__ = ["train"]


def train(
    data: str | Path | None = None,
    model: str | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    *,
    config: str | Path | None = None,
    results: str | Path | None = None,
    logger: str | None = None,
    quiet: bool = False,
    command: str | None = None,
    **overrides: Any,
) -> Result:
    r"""Trains a network on a dataset by the paper's protocol, resumes a run that was interrupted,
    or reads the result of one that has finished.

    .. code-block:: python

        result = fognn.train("zinc", "gcn+fog", seed=0, epochs=100, **{"model.channels": 64})
        result.metrics["test/mae"]
        net = fognn.load(result.folder)

    Args:
        data (str): A dataset, or your own: a csv file of molecules (``target`` names the column to
            learn), a file or a folder of graphs.
        model (str): A network of :func:`fognn.list_models`.
        seed (int, optional): The seed. (default: :obj:`0`)
        folder (str, optional): The run folder.
            (default: see :func:`fognn.paper.tables.run_folder`)
        config (str, optional): A ``config.yaml`` to start from, in place of ``data`` and
            ``model``. (default: :obj:`None`)
        results (str, optional): Folder of the ledgers. If given, the finished run is entered into
            the ledger of its table, or into ``runs.jsonl``. (default: :obj:`None`)
        logger (str, optional): ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``, beside
            ``metrics.csv``. (default: :obj:`None`)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        command (str, optional): The command that resumes the run, for messages.
        **overrides: Settings of :class:`~fognn.training.Config`, by their dotted names
            (``**{"training.lr": 1e-3}``) or by the last part alone where it is unique
            (``lr=1e-3``).
    """
    changes = {setting_name(name): value for name, value in overrides.items()}
    if changes.get("data.folder") is not None:
        changes["data.folder"] = str(changes["data.folder"])
    if config is not None:
        if data is not None or model is not None:
            raise ValueError("train: config must be given alone, without data and model")
        if seed is not None:
            changes["seed"] = seed
        run = Config.read(Path(config)).with_values(changes)
    elif data is None or model is None:
        raise ValueError("train: data and model must be given, or a config")
    else:
        run = protocol(str(data), model, seed or 0, changes)
    result = fit(run, folder or run_folder(run), command, quiet, logger)
    if results is not None and rank() == 0:
        enter(result.folder, Path(results))
    return result
