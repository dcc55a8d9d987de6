r"""The notes below a table of results."""

from collections.abc import Mapping, Sequence
from typing import Any

from fognn.experiments.differences import joined
from fognn.experiments.rows import get_row

_EPOCHS = {"last": "the last epoch", "best": "the epoch with the best validation metric"}
_AVERAGES = {
    "batches": "averaged over batches, as in the public benchmark",
    "items": "over all items at once",
}
# Where the paper's equations are not what its figures, or its parameter counts, say.
_VARIANTS = {
    "GCN": "The paper's figures of GCN are quoted from the public benchmark, which takes the mean "
    "over neighbours; GCN+FOG has the symmetric norm of the paper's equation here, and is compared "
    "with GCN of the same norm where that was run. Which norm the printed GCN+FOG has is not "
    "decided.",
    "GraphSAGE": "GraphSAGE takes the maximum over neighbours, as the parameter counts say and "
    "the paper's equation does not.",
}
_FOLDS = (
    "Here: on the held-out folds at the best epoch of their mean curve, over all items, as in the "
    "paper; that epoch was chosen on these folds, so the figure is optimistic. Held out: at the "
    "last epoch, which nothing chose. Folds share their training graphs, so an interval over folds "
    "is too narrow."
)
_EPISODES = (
    "±, with one seed: the 95 % interval over the test episodes, the paper's form, which says "
    "nothing about other seeds. Parameters are those of the whole network; the paper counts its "
    "graph part."
)


def notes_of(
    lines: Sequence[Any],
    at: str,
    over: str,
    numbers: Mapping[tuple[str, ...], str],
    difference: str,
) -> list[str]:
    r"""Returns sentences: which figure is shown, over what, what is ours, and what limits it."""
    measured = [line for line in lines if line.entries]
    if not measured:
        return [f"Nothing is measured yet: see fognn reproduce {lines[0].table} --help."]
    papers = [get_row(line.row) for line in lines]
    notes = []
    if any(entry.result["test"] for line in measured for entry in line.entries):
        notes.append(f"Here: on the test split at {_EPOCHS[at]}, {_AVERAGES[over]}.")
    fractions = sorted({paper.fraction for paper in papers if paper.fraction})
    if fractions:
        parts = joined([f"{100 * fraction:g} %" for fraction in fractions])
        notes.append(f"Trained and tested on the first {parts} of each split.")
    if any(line.folds for line in measured):
        notes.append(_FOLDS)
    else:
        notes.append("±: s.d. over seeds; one seed has none, and a difference may be chance.")
    if any(paper.few_shot for paper in papers):
        notes.append(_EPISODES)
    paired = [line for line in lines if line.host]
    if paired:
        notes.append(
            f"{difference}: mean difference over the runs that both have, with a 95 % interval by "
            "Student's t."
        )
    rates = {line.network: line.lr for line in lines}
    unequal = [
        f"{line.network} {line.lr:g} and {rates[line.host]:g}"
        for line in paired
        if line.lr != rates[line.host]
    ]
    if unequal:
        notes.append(
            "These pairs have unequal learning rates, so that their difference has more than one "
            f"cause: {'; '.join(unequal)}."
        )
    of_the_paper = any(paper.table is not None for paper in papers)
    ours = "†: ours, not in the paper: a variant, or other settings."
    if any(line.ours for line in lines):
        notes.append(ours if of_the_paper else "†: other settings than the row's.")
    hosts = {paper.model.removesuffix("+FOG") for paper in papers if of_the_paper}
    notes += [text for name, text in _VARIANTS.items() if name in hosts]
    if any(line.off for line in lines):
        notes.append("!: more than 3 printed s.d., or 5 %, away from the paper; docs/results.md.")
    return [*notes, *(f"{number}: {', '.join(changed)}." for changed, number in numbers.items())]
