# ruff: noqa: E501
r"""The content of the page of one run."""

from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.scores import score_of
from fognn.report.measurements import AT, OVER
from fognn.report.metric import METRICS
from fognn.report.site.curves import run_figures
from fognn.report.text import NONE, pluralize
from fognn.training.settings import flat

__all__ = ["facts_of", "run_context", "settings_of"]

_ENDS = {"rate": "the learning rate fell below its minimum", "epochs": "all epochs were done"}
_SPLITS = {"train": "training", "val": "validation", "test": "test"}


def run_context(title: str, entry: LedgerEntry, at: str = AT, over: str = OVER) -> dict[str, Any]:
    r"""The page of a run: its curves, its results, its settings, and how to repeat it.

    Args:
        title (str): The network and its data, as the table names them.
        entry (LedgerEntry): The run.
        at (str, optional): The epoch of the figures in the table. (default: :obj:`"last"`)
        over (str, optional): The average of the figures in the table.
            (default: :obj:`"batches"`)
    """
    result = entry.result
    metric = METRICS[result["metric"]]
    found = score_of(entry, at, over)
    score = metric.number(found.value) + " %" * metric.percent
    if found.interval is not None:
        score += f" ± {metric.number(found.interval)} (95 % interval over the test episodes)"
    stopped = _ENDS.get(result["stopped"], result["stopped"])
    return {
        "title": f"{title}, seed {entry.seed}",
        "summary": (
            f"{metric.label} {score}, as in the table, after {pluralize(result['epochs'], 'epoch')} of "
            f"{result['seconds_per_epoch']:.2f} s; the training ended because {stopped}."
        ),
        "figures": run_figures(entry, metric),
        "results": {
            "caption": f"Loss and {metric.axis} at the last and at the best validation epoch",
            "header": ["split", "epoch", "loss", "over items", "mean of the batches"],
            "rows": _results(result),
        },
        "settings": list(settings_of(entry).items()),
        "command": result["command"],
        "facts": list(facts_of(entry).items()),
        "sortable": False,
    }


def _results(result: dict[str, Any]) -> list[list[str]]:
    kinds = ("loss", "items", "batches")
    rows = []
    for split, name in _SPLITS.items():
        for at in ("last", "best"):
            if result[split] is not None:
                epoch = result["epochs"] if at == "last" else result["best_epoch"]
                numbers = [_text(result[split][at][kind], "{:.5g}") for kind in kinds]
                rows.append([name, f"{at}, {epoch}", *numbers])
    for fold in result.get("folds") or []:
        numbers = [_text(fold["val"]["best"][kind], "{:.5g}") for kind in kinds]
        rows.append([f"validation, fold {fold['fold']}", f"best, {result['best_epoch']}", *numbers])
    return rows


def settings_of(entry: LedgerEntry) -> dict[str, str]:
    r"""All settings as text, by their dotted names."""
    # In full: runs whose settings have the same text are of the same group.
    return {name: _text(value, "{}") for name, value in flat(entry.config).items()}


def facts_of(entry: LedgerEntry) -> dict[str, str]:
    r"""The commit, the data, the machine and the versions of a run, as text."""
    names = ["parameters", "seconds", "commit", "fingerprint", "device", "threads", "ranks"]
    names += ["peak_memory"] if entry.result.get("peak_memory") is not None else []
    facts = {"finished": entry.finished} | {name: entry.result.get(name) for name in names}
    for name in ("machine", "versions"):
        facts |= entry.result.get(name) or {}
    return {name: _text(fact) for name, fact in facts.items()}


def _text(value: Any, form: str = "{:g}") -> str:
    if value is None:
        return NONE
    return form.format(value) if isinstance(value, float) else str(value)
