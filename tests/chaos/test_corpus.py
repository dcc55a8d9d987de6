"""A short sample of the campaign with files, so that it stays able to run."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from tiny_runs import molecules

from chaos.commands import import_all
from chaos.findings import Counts
from chaos.formats import FORMATS, clean, digest, sample
from chaos.fuzz import BYTES, fuzz_trials, mutate
from chaos.hostile import hostile_kinds
from chaos.trials import Trial, command_trial, read_trials
from fognn.data import write_graphs

# One of each part of the corpus, and the findings of the past.
CHOSEN = [
    ("graphs.pt", "names ClusterData"),
    ("kept omniglot", "names ClusterData"),
    ("pyg TUDataset processed", "names builtins.eval"),
    ("pyg TUDataset processed", "code in pre_transform.pt"),
    ("graphs.pt", "2**62 in x"),
    ("graphs.pt", "edge labels in a graph without edges"),
    ("graphs.pt", "an edge to node 2**31"),
    ("graphs.pt", "meta as x"),
    ("graphs.pt", "quantised as edge_attr"),
    ("graphs.pt", "expanded as y"),
    ("graphs.npz", "fifo"),
    ("run/result.json", "fifo"),
    ("zinc.jsonl", "fifo"),
    ("graphs.pt", "link loop"),
    ("tsp.npz", "header that is not closed"),
    ("--config", "an anchor bomb"),
    ("--config", "10,000 levels of lists"),
    ("molecules.csv", "a SMILES of 130,000 characters"),
    ("net/config.json", "100,000 levels of objects"),
    ("zinc.jsonl", "an integer of 5,000 digits"),
    ("mini-imagenet.pkl", "lists that unfold to 10**20"),
    ("mini-imagenet.jpg", "100,000 x 100,000"),
    ("omniglot.zip", "100,000 x 100,000"),
    ("query image", "12,000 x 12,000"),
    ("support image", "fifo"),
]


@pytest.fixture(scope="module", autouse=True)
def imported():
    import_all()
    yield
    clean()


def test_the_corpus_has_the_findings_of_the_past() -> None:
    kinds = hostile_kinds()
    assert len(kinds) > 1000
    assert len({trial.kind for trial in kinds}) > 300
    assert {trial.format for trial in kinds} == set(FORMATS)
    known = {(trial.format, trial.kind) for trial in kinds}
    for one in CHOSEN:
        assert one in known, one


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_every_kind_can_be_made(tmp_path: Path) -> None:
    """One format for each kind of file; those of hundreds of megabytes are left out."""
    large = ("bomb of", "5 million", "a million", "10 MB", "2**17 columns")
    seen, same = set[str](), list[tuple[str, str]]()
    for number, trial in enumerate(hostile_kinds()):
        name = trial.kind.partition(":")[0]
        if name in seen or any(text in name for text in large):
            continue
        seen.add(name)
        path = sample(FORMATS[trial.format], tmp_path / str(number))
        before = path.read_bytes()
        trial.write(path, tmp_path / "canary")
        regular = path.is_file() and not path.is_symlink()
        changed = not regular or path.read_bytes() != before
        beside = path.with_name("pre_transform.pt").exists()
        if not (changed or beside or name.startswith("value ")):
            same.append((trial.format, trial.kind))
    assert same == []
    assert not (tmp_path / "canary").exists()
    assert len(seen) > 300


def test_some_hostile_files(tmp_path: Path) -> None:
    counts = Counts(tmp_path / "findings")
    kinds = {(trial.format, trial.kind): trial for trial in hostile_kinds()}
    trials = [kinds[one] for one in CHOSEN]
    read_trials(counts, "files", trials, tmp_path / "trial")
    assert counts.findings == []
    assert sum(counts.parts["files"].values()) == len(trials)
    for one in (("graphs.npz", "fifo"), ("--config", "an anchor bomb")):
        command = FORMATS[one[0]].commands[0]
        command_trial(counts, "commands", kinds[one], command, tmp_path / "trial")
    assert counts.findings == []
    assert counts.parts["commands"] == Counter(line=2)


def test_some_fuzzed_files(tmp_path: Path) -> None:
    counts = Counts(tmp_path / "findings")
    formats = ["graphs.npz", "run/config.yaml", "zinc.jsonl", "cached cluster", "run/best.ckpt"]
    for seed, name in enumerate(formats):
        fuzz_trials(counts, tmp_path / f"work{seed}", seed, 20, [name])
    assert counts.findings == []
    assert sum(counts.parts["fuzz"].values()) == 100


def test_what_is_wrong_is_a_finding(tmp_path: Path) -> None:
    """A process that dies, or runs code, is found, and the other files are read."""

    def die(path: Path, canary: Path) -> None:
        if (path.parents[1] / "verdicts.txt").exists():  # not when it is kept as a finding
            os.kill(os.getpid(), signal.SIGKILL)

    def mark(path: Path, canary: Path) -> None:
        canary.mkdir()

    def other(path: Path, canary: Path) -> None:
        write_graphs(path, molecules(12, seed=5))

    counts = Counts(tmp_path / "findings")
    kinds = [("dies", die), ("runs code", mark), ("is another one", other)]
    kinds += [("is the same", lambda path, canary: None)]
    trials = [Trial(kind, "graphs.npz", write) for kind, write in kinds]
    read_trials(counts, "files", trials, tmp_path / "trial")
    found = [finding["outcome"] for finding in counts.findings]
    assert found == ["killed by SIGKILL", "code run", "another result, without a word"]
    assert counts.parts["files"] == Counter(finding=3, same=1)
    assert (tmp_path / "findings" / "001" / "sample" / "graphs.npz").is_file()


def test_changes_are_seeded_and_change_something(tmp_path: Path) -> None:
    for number, name in enumerate(("graphs.npz", "--config", "zinc.jsonl", "molecules.csv")):
        path = sample(FORMATS[name], tmp_path / str(number))
        content = path.read_bytes()
        made = [mutate(random.Random(seed), path.name, content) for seed in range(40)]
        assert made == [mutate(random.Random(seed), path.name, content) for seed in range(40)]
        assert len({new for _, new in made} - {content}) > 30
        assert len({kind for kind, _ in made}) > len(BYTES) / 2


def test_a_digest_tells_files_apart(tmp_path: Path) -> None:
    one = FORMATS["graphs.npz"]
    sample(one, tmp_path)
    read = one.read(tmp_path)
    assert digest(read) == digest(one.read(tmp_path))
    read.graphs[0].x[0] += 1
    assert digest(read) != digest(one.read(tmp_path))
