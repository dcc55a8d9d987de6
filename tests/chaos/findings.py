"""Counts of a campaign, and its findings as folders that reproduce them."""

import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Counts"]

FINE = ("same", "done", "line")


@dataclass
class Counts:
    """How the trials of a campaign ended, by part and outcome.

    An outcome is ``"same"`` (the same result), ``"line"`` (one clear line, nothing lost),
    ``"done"`` (a changed file that is valid, too, and is taken as another input), or a finding:
    any other text.

    Args:
        folder: Where findings are kept.
    """

    folder: Path
    parts: dict[str, Counter[str]] = field(default_factory=dict)
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        part: str,
        kind: str,
        outcome: str,
        files: Sequence[Path] = (),
        command: Sequence[str] = (),
        note: str = "",
    ) -> None:
        """Counts a trial; keeps a finding with its files and its command.

        Args:
            part: Such as ``"kills"`` or ``"files"``.
            kind: What was tried, such as ``"graphs.pt: bit flip"``.
            outcome: How it ended.
            files: Files and folders that reproduce a finding; they are copied.
            command: The arguments of ``fognn`` that reproduce it.
            note: Anything else, such as the output.
        """
        fine = outcome in FINE
        name = outcome if fine else "finding"
        self.parts.setdefault(part, Counter())[name] += 1
        self.kinds.setdefault(f"{part}: {kind}", Counter())[name] += 1
        if fine:
            return
        place = self.folder / f"{len(self.findings) + 1:03d}"
        place.mkdir(parents=True)
        for file in files:
            if file.is_dir():
                shutil.copytree(file, place / file.name, symlinks=True)
            elif file.is_file():
                shutil.copy2(file, place / file.name)
        text = [f"# {part}: {kind}", f"# {outcome}", f"fognn {shlex.join(command)}", ""]
        (place / "command.sh").write_text("\n".join(text))
        (place / "note.txt").write_text(note)
        finding = {"part": part, "kind": kind, "outcome": outcome, "folder": place.name}
        self.findings.append(finding)
        print(f"finding {place}: {part}: {kind}: {outcome}", flush=True)

    def of(self, part: str) -> dict[str, Any]:
        """The counts and findings of a part, and of those that it counts beside itself."""
        own = [name for name in self.parts if name.partition(",")[0] == part]
        kinds = {
            kind: dict(counts)
            for kind, counts in sorted(self.kinds.items())
            if kind.partition(":")[0] in own
        }
        return {
            "counts": {name: dict(self.parts[name]) for name in own},
            "kinds": kinds,
            "findings": [finding for finding in self.findings if finding["part"] in own],
        }
