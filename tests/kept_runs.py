"""Finished runs by the protocol of a row, with checkpoints and true figures, without training."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from run_folders import write_run
from tiny_runs import molecules
from torch_geometric.data import Data

from fognn.experiments.tables import TableRun
from fognn.training import Config, evaluate
from fognn.training.data import task_of
from fognn.training.networks import untrained_model, write_checkpoint

EPOCHS = 4


def use_tiny_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each split of ZINC and of IMDB-MULTI has a few random graphs."""
    monkeypatch.setattr("fognn.training.data._graphs", lambda data, split: _graphs(data, split))


def _graphs(data: Any, split: str) -> list[Data]:
    seed = ["train", "val", "test"].index(split) + 10 * (data.fold or 0)
    if data.name != "IMDB-MULTI":
        return molecules(150, seed)
    graphs = molecules(20, seed, classes=3)
    for graph in graphs:
        graph.x, graph.edge_attr = graph.x.view(-1, 1).float() / 28, None
    return graphs


def kept_run(folder: Path, planned: TableRun) -> Path:
    """Writes the run folder of a network that was not trained; use_tiny_data comes first."""
    config = planned.config
    if config.data.name != "IMDB-MULTI":
        return _one(folder, config)
    write_run(folder, config, None)
    result = json.loads((folder / "result.json").read_text())
    result["folds"] = []
    for fold in (1, 2):
        part = config.with_values({"data.fold": fold})
        _one(folder / f"fold-{fold}", part)
        own = json.loads((folder / f"fold-{fold}" / "result.json").read_text())
        result["folds"].append(
            {"fold": fold, "val": own["val"], "test": None, "epochs": own["epochs"]}
        )
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def _one(folder: Path, config: Config) -> Path:
    split = "val" if config.data.fold else "test"
    write_run(folder, config, 0.0 if split == "test" else None)
    task = task_of(config.data)
    net = untrained_model(config, task)
    with torch.no_grad():
        for value in net.parameters():
            value += 0.01 * (config.data.fold or 0)
    state = {"history": [{"epoch": epoch} for epoch in range(1, EPOCHS + 1)]}
    write_checkpoint(
        folder / "last.ckpt", config, task, {"model": net.state_dict(), "state": state}
    )
    scores = evaluate(folder, split, "last", "cpu")
    result = json.loads((folder / "result.json").read_text())
    for over in ("batches", "items"):
        result[split]["last"][over] = scores[f"{config.training.metric}_{over}"]
    (folder / "result.json").write_text(json.dumps(result))
    return folder
