import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import metrics, tiny

from fognn.training import fit
from fognn.training.loggers import make_logger


def test_tensorboard_has_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fit(tiny(), tmp_path / "run", quiet=True, logger="tensorboard")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    rows = metrics(tmp_path / "run")
    names = set(rows[0]) - {"epoch"}
    assert set(events.Tags()["scalars"]) == names | {"train_seconds", "val_seconds"}
    for name in names:
        seen = events.Scalars(name)
        assert [event.step for event in seen] == [1, 2, 3]
        # TensorBoard keeps float32.
        expected = [float(row[name]) for row in rows]
        assert [event.value for event in seen] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("name", "kind"), [("mlflow", "MLFlowLogger"), ("wandb", "WandbLogger")])
def test_the_others_get_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    """They are not installed here: what Lightning's classes are asked for is all we can see."""
    import lightning.pytorch.loggers as loggers

    asked: dict[str, Any] = {}

    class Spy:
        def __init__(self, *_: Any, **options: Any) -> None:
            asked.update(options)

        def log_hyperparams(self, params: dict[str, Any]) -> None:
            asked["params"] = params

    monkeypatch.setattr(loggers, kind, Spy)
    make_logger(name, tmp_path / "my-run", tiny())
    assert asked["params"] == tiny().to_dict()
    assert Path(asked["save_dir"]).is_relative_to(tmp_path / "my-run")
    assert "my-run" in (asked.get("run_name"), asked.get("name"))
    assert name not in sys.modules
