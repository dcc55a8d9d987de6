import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compared_runs import FakeTraining
from tiny_runs import molecules

from fognn.experiments.compare_runs import measure, networks, seconds_of
from fognn.experiments.compared import Compared
from fognn.experiments.ledger import ledger_of
from fognn.experiments.pool import Job, Summary
from fognn.experiments.protocols import command_of, protocol
from fognn.experiments.reproduce import reproduce
from fognn.experiments.search import Choices, choices_file
from fognn.models import count_parameters, create_model
from fognn.models.registry import FOG_SETTINGS, HOSTS
from fognn.training.settings import assignments, flat
from fognn.training.data import task_of

SMALL = {"epochs": 1, "batch_size": 8, "threads": 1}


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    torch.save(molecules(40), tmp_path / "graphs.pt")
    return tmp_path / "graphs.pt"


def planned(graphs: Path, hosts: tuple[str, ...] = ("gcn", "gin"), **more: Any) -> list[Compared]:
    return networks(str(graphs), hosts, 6000, SMALL, **more)


def test_both_networks_of_a_host_differ_in_the_network_alone(graphs: Path) -> None:
    host, fog, *others = planned(graphs, ("gatedgcn-e", "fog"))
    assert [run.label for run in (host, fog, *others)] == ["GatedGCN-E", "GatedGCN-E+FOG", "FOG"]
    one, two = flat(host.config.to_dict()), flat(fog.config.to_dict())
    different = {name for name in one | two if one.get(name) != two.get(name)}
    of_fog = {f"model.{name}" for name in FOG_SETTINGS}
    assert different <= {"model.name", "model.channels", "model.head_channels", *of_fog}
    assert (one["training.epochs"], one["model.layers"]) == (1, 4)
    task = task_of(host.config.data)
    sizes = [
        count_parameters(create_model(run.config.model.name, task, **run.config.model.settings))
        for run in (host, fog)
    ]
    assert sizes[1] <= sizes[0]
    assert all(abs(size - 6000) <= 60 for size in sizes)


@pytest.mark.parametrize("host", ["gcn", "gat", "gin", "fog"])
def test_the_command_of_a_run_repeats_it(host: str) -> None:
    # The paper's rows on PATTERN have other settings, such as GCN's norm.
    for run in networks("pattern", [host], 6000, SMALL):
        words = shlex.split(command_of(run.config))
        assert words[:4] == ["fognn", "train", "pattern", run.config.model.name]
        values = assignments(words[number + 1] for number, w in enumerate(words) if w == "--set")
        assert protocol("pattern", words[3], 0, values).identity() == run.config.identity()


def test_names_do_not_depend_on_the_folder(graphs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = shutil.copy(graphs, tmp_path / "elsewhere" / "graphs.pt")
    (run, *_), (same, *_) = planned(graphs), planned(other)
    assert run.table == "compare/graphs"
    assert run.key == same.key
    assert run.folder(Path("runs")) == Path("runs") / run.key
    assert planned(graphs, name="mine")[0].table == "compare/mine"


def test_trained_once_each_also_after_an_interruption(
    graphs: Path, tmp_path: Path, pool_here: Callable[..., list[Any]]
) -> None:
    started: list[str] = []

    def before(job: Job) -> None:
        started.append(job.key)
        if len(started) == 6:
            raise KeyboardInterrupt

    pool_here(before)
    runs, results = tmp_path / "runs", tmp_path / "results"

    def train(some: Any) -> Summary:
        return reproduce(some, runs, results, quiet=True)

    def go() -> Any:
        return measure(planned(graphs), runs, results, train, 2, (0.01, 0.001))

    with pytest.raises(KeyboardInterrupt):
        go()
    found = go()
    assert len(started) == 4 * 2 + 4 + 1
    assert sorted(set(started)) == sorted(started[:5] + started[6:])
    assert [(entry.label, entry.seed) for entry in found.entries] == [
        (label, seed) for label in ("GCN", "GCN+FOG", "GIN", "GIN+FOG") for seed in (0, 1)
    ]
    assert found.seeds == 2
    assert all(entry.result["peak_memory"] > 2**20 for entry in found.entries)
    # A clone has the ledger and no run folders.
    shutil.rmtree(runs)
    assert go().entries == found.entries
    assert len(started) == 13


def test_the_rate_is_chosen_by_validation_alone(graphs: Path, tmp_path: Path) -> None:
    # By validation 0.001 is best, by the test split 0.01; of FOG the other way round.
    best = {"": 0.001, "fog": 0.01}

    def scores(run: Any) -> tuple[float, float]:
        right = run.config.training.lr == best[run.variant]
        return (0.1, 0.9) if right else (0.2, 0.3)

    train = FakeTraining(tmp_path, scores)
    found = measure(planned(graphs, ("gcn",)), tmp_path, tmp_path, train, 3, (0.01, 0.001, 0.1))
    assert [choice.lr for choice in found.choices] == [0.001, 0.01]
    assert len(train.trained) == 2 * 3 + 2 * 2
    assert {entry.result["test"]["best"]["items"] for entry in found.entries} == {0.9}
    assert {(e.variant, e.config["training"]["lr"]) for e in found.entries} == set(best.items())
    table = found.networks[0].table
    assert Choices(choices_file(tmp_path, table)).all() == list(found.choices)


def test_failed_rates_are_not_chosen(graphs: Path, tmp_path: Path) -> None:
    def scores(run: Any) -> tuple[float, float] | str:
        bad = run.config.training.lr == 0.01 or run.label == "GIN"
        return "the loss is nan" if bad else (0.1, 0.2)

    train = FakeTraining(tmp_path, scores)
    found = measure(planned(graphs), tmp_path, tmp_path, train, 2, (0.01, 0.001))
    assert {choice.label: choice.lr for choice in found.choices} == {
        **{"GCN": 0.001, "GCN+FOG": 0.001, "GIN+FOG": 0.001},
    }
    assert found.choices[0].tried[0].score is None
    assert len(found.failed) == 5
    assert {entry.label for entry in found.entries} == {"GCN", "GCN+FOG", "GIN+FOG"}


@pytest.mark.parametrize(
    ("seconds", "most", "seeds"),
    # A run takes 10 seconds: the search 80, each further seed 40.
    [(1, None, 1), (119, None, 1), (120, None, 2), (165, None, 3), (1000, 4, 4)],
)
def test_as_many_seeds_as_the_time_allows(
    graphs: Path, tmp_path: Path, seconds: float, most: int | None, seeds: int
) -> None:
    now = 0.0

    def tick(count: int) -> None:
        nonlocal now
        now += 10 * count

    train = FakeTraining(tmp_path, lambda run: (0.1, 0.2))
    train.after = tick

    def go() -> Any:
        return measure(
            *(planned(graphs), tmp_path, tmp_path, train, most, (0.01, 0.001)),
            seconds=seconds,
            clock=lambda: now,
        )

    found = go()
    assert found.seeds == seeds
    assert len(train.trained) == 8 + 4 * (seeds - 1)
    assert len(found.entries) == 4 * seeds


def test_finished_seeds_cost_no_time(graphs: Path, tmp_path: Path) -> None:
    train = FakeTraining(tmp_path, lambda run: (0.1, 0.2))
    networks = planned(graphs, ("gcn",))
    measure(networks, tmp_path, tmp_path, train, 3, (0.01,))
    found = measure(networks, tmp_path, tmp_path, train, None, (0.01,), 1e-9)
    assert found.seeds == 3
    assert len(train.trained) == 6


def test_data_that_have_changed(graphs: Path, tmp_path: Path) -> None:
    networks = planned(graphs, ("gcn",))
    train = FakeTraining(tmp_path, lambda run: (0.1, 0.2))
    measure(networks, tmp_path, tmp_path, train, 1, (0.01,))
    ledger = ledger_of(networks[0].table, tmp_path)
    assert ledger.path == tmp_path / "compare" / "graphs.jsonl"
    for entry in ledger.entries():
        entry.result["fingerprint"] = "0123"
        ledger.add(entry)
    with pytest.raises(ValueError, match=r"graphs\.pt' have changed .*--name"):
        measure(networks, tmp_path, tmp_path, train, 1, (0.01,))


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("1.5h", 5400), ("90s", 90), (" 2 m ", 120)]
)
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["30", "m", "-5m", "1d", "0s", "1h30m", ""])
def test_times_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"time must be .* such as 30m, got"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"hosts": ["gcm"]}, r"hosts .*'gcm'; did you mean .*'gcn'"),
        ({"hosts": ["gcn+fog"]}, r"hosts must be named without FOG.* got 'gcn\+fog'"),
        ({"hosts": ["gcn", "gcn"]}, r"hosts must differ, got gcn, gcn"),
        ({"hosts": []}, r"hosts must be a list of names, got \[\]"),
        ({"budget": 0}, r"budget must be a positive int, got 0"),
        ({"budget": 50}, r"budget .* got 50; the nearest is \d+"),
        ({"name": "A b"}, r"name must be .* got 'A b'"),
        ({"values": {"model.channels": 8}}, r"values must not have 'model\.channels'"),
        ({"values": {"seed": 8}}, r"values must not have 'seed'"),
        ({"data": "miniimagenet-5way-1shot"}, r"data must be graphs, got 'miniimagenet"),
        ({"data": "cluster", "hosts": ["gatedgcn-e"]}, r"for 'gatedgcn-e'"),
    ],
)
def test_networks_that_cannot_be(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        networks(**{"data": "cluster", "hosts": ["gcn"], "budget": 5000} | changed)


def test_a_host_that_only_this_process_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOSTS, "here", HOSTS["gcn"])
    monkeypatch.delenv("FOGNN_IMPORT", raising=False)
    with pytest.raises(ValueError, match=r"registers 'here' \(--import"):
        networks("cluster", ["here"], 5000)


@pytest.mark.parametrize("rates", [(), (0.1, 0.1), (0.0,), (-1.0,), ("x",)])
def test_rates_that_cannot_be(graphs: Path, tmp_path: Path, rates: Any) -> None:
    train = FakeTraining(tmp_path, lambda run: (0.1, 0.2))
    with pytest.raises(ValueError, match=r"rates must be different positive numbers, got"):
        measure(planned(graphs, ("gcn",)), tmp_path, tmp_path, train, 1, rates)
    assert not train.trained
