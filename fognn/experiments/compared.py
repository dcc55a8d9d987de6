r"""The runs of a comparison of networks with and without FOG on any data."""

from collections.abc import Sequence
from pathlib import Path

from fognn.experiments.entry_checks import COMPARE
from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.rows import rows
from fognn.experiments.search import Choice
from fognn.experiments.tables import Planned, portable

__all__ = ["Compared", "chosen_entries", "display_name", "table_of"]


class Compared(Planned):
    r"""One run of a comparison.

    Its table is ``"compare/NAME"``, its row the host with the budget, such as ``"gin-100000"``, and
    its variant ``"fog"`` for the network with FOG.
    """

    @property
    def slug(self) -> str:
        r"""The network, with a digest of all settings but the learning rate and the seed."""
        # Without paths: a clone with the ledger does not train the runs again.
        same = portable(self.config).with_values({"training.lr": 1.0, "seed": 0})
        return f"{self.config.model.name}-{same.digest()}"

    @property
    def name(self) -> str:
        r"""The slug with the learning rate and the seed."""
        return f"{self.slug}-lr{self.config.training.lr:g}-seed{self.config.seed}"

    @property
    def search_key(self) -> str:
        return f"{self.table}/{self.slug}"

    def folder(self, root: Path) -> Path:
        return Path(root) / self.key


def table_of(name: str) -> str:
    r"""Returns the table of a comparison by its name."""
    return f"{COMPARE}{name}"


def chosen_entries(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the runs of a comparison with the learning rate that the search of their network
    chose.

    Args:
        entries (list): Lines of the ledger.
        choices (list): The searches.
    """
    rates = {choice.key: choice.lr for choice in choices}
    return [
        entry
        for entry in entries
        if rates.get(entry.key.rpartition("-lr")[0]) == entry.config["training"]["lr"]
    ]


def display_name(model: str) -> str:
    r"""Returns a network's name as the paper writes it: ``"GatedGCN-E+FOG"``."""
    written = {row.model.lower(): row.model for row in rows() if not row.few_shot}
    host, plus, _ = model.partition("+fog")
    return written.get(host, "FOG" if host == "fog" else host) + ("+FOG" if plus else "")
