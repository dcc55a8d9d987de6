r"""What a run's page shows: its curves, its results, its settings, and how to repeat it."""

from typing import Any

from fognn.paper.ledger import LedgerEntry
from fognn.paper.table_line import TableLine
from fognn.report.metric import METRICS
from fognn.report.run_groups import NONE
from fognn.report.site_curves import run_figures
from fognn.report.site_numbers import value
from fognn.report.words import many
from fognn.training.config_section import flat

__all__ = ["run_context"]

_ENDS = {"rate": "the learning rate fell below its end", "epochs": "all epochs were done"}
_SPLITS = {"train": "train_one", "val": "validation", "test": "test"}


def run_context(line: TableLine, entry: LedgerEntry) -> dict[str, Any]:
    r"""What the template of a run's page needs.

    Args:
        line (TableLine): The line of its table.
        entry (LedgerEntry): The run.
    """
    result = entry.result
    metric = METRICS[result["metric"]]
    score = line.values[line.entries.index(entry)]
    stopped = _ENDS.get(result["stopped"], result["stopped"])
    return {
        "title": f"{line.label} on {line.paper.dataset}, seed {entry.seed}",
        "summary": (
            f"{metric.label} {value(score, metric)}{' %' * metric.percent}, as the table shows it, "
            f"after {many(result['epochs'], 'epoch')} of {result['seconds_per_epoch']:.2f} s; it "
            f"ended because {stopped}."
        ),
        "figures": run_figures(entry, metric),
        "results": {
            "caption": f"Loss and {metric.axis} at the last and at the best validation epoch",
            "header": ["split", "epoch", "loss", "over items", "mean of the batches"],
            "rows": _results(result),
        },
        "settings": [[name, _text(setting)] for name, setting in flat(entry.config).items()],
        "command": result["command"],
        "facts": _facts(entry),
        "sortable": False,
    }


def _results(result: dict[str, Any]) -> list[list[str]]:
    rows = []
    for split, name in _SPLITS.items():
        for at in ("last", "best"):
            if result[split] is not None:
                scores = result[split][at]
                epoch = result["epochs"] if at == "last" else result["best_epoch"]
                numbers = [f"{scores[kind]:.5g}" for kind in ("loss", "items", "batches")]
                rows.append([name, f"{at}, {epoch}", *numbers])
    for fold in result.get("folds") or []:
        best = fold["val"]["best"]
        numbers = [f"{best[kind]:.5g}" for kind in ("loss", "items", "batches")]
        rows.append([f"validation, fold {fold['fold']}", f"best, {result['best_epoch']}", *numbers])
    return rows


def _facts(entry: LedgerEntry) -> list[list[str]]:
    result = entry.result
    facts: dict[str, Any] = {"finished": entry.finished, "parameters": result["parameters"]}
    facts |= {
        name: result.get(name) for name in ("seconds", "commit", "device", "threads", "ranks")
    }
    for name in ("machine", "versions"):
        facts |= result.get(name) or {}
    return [[name, _text(fact)] for name, fact in facts.items()]


def _text(setting: Any) -> str:
    if setting is None:
        return NONE
    return f"{setting:g}" if isinstance(setting, float) else str(setting)
