r"""Commands for the tables of the paper and of our own: reproduce, table, verify, report."""

import itertools
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fognn.cli.app import (
    DataFolder,
    Device,
    Quiet,
    Ray,
    Results,
    Runs,
    Shared,
    WeightsFolder,
    Workers,
    app,
    exit_if_stopped,
    numbers,
)
from fognn.experiments.rows import TABLES

_TABLES = ", ".join(TABLES)


@app.command()
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help=f"One of {_TABLES}."),
    ],
    models: Annotated[
        str | None,
        typer.Option(help="Only these rows, such as gcn,gcn+fog or '*fog*'; variants: gcn-sym."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 0.")] = 1,
    fraction: Annotated[
        float | None, typer.Option(help="Fraction of each split to use, from its beginning.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as training.lr=0.01. Repeatable."),
    ] = None,
    ours: Annotated[bool, typer.Option(help="Train our variants of the paper's rows, too.")] = True,
    search: Annotated[
        bool,
        typer.Option("--search", help="First search learning rate and weight decay on a grid."),
    ] = False,
    rates: Annotated[
        str | None,
        typer.Option(help="Learning rates of --search. [0.01,0.005,0.001,0.0005, as the paper]"),
    ] = None,
    decays: Annotated[
        str | None,
        typer.Option(help="Weight decays of --search. [0.001,0.000001,0, as the paper]"),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="--search tries the paper's settings of the host and of the host with FOG only.",
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Train runs that are finished or in the ledger again.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the commands of the runs that are left.")
    ] = False,
    workers: Workers = "1",
    ray: Ray = None,
    shared: Shared = False,
    runs: Runs = Path("runs"),
    results: Results = Path("results"),
    weights: WeightsFolder = None,
    data_folder: DataFolder = None,
    quiet: Quiet = False,
) -> None:
    """Train the runs of a table of the paper, or of our own.

    Runs that are finished, or in the ledger, are skipped; unfinished ones are resumed; finished run
    folders that are not in the ledger, such as those of another machine, are added to it. Each
    finished run is added to the ledger, results/TABLE.jsonl, and the weights of each row's lowest
    seed to weights/TABLE. fognn table TABLE compares the runs with the paper's figures, fognn
    verify TABLE evaluates the weights.

    \b
    Examples:
      fognn reproduce zinc --seeds 4 --workers auto
      fognn reproduce zinc --models gcn,gcn+fog --fraction 0.1 --epochs 20 --dry-run
      fognn reproduce zinc --search --pairs --seeds 2
      fognn reproduce zinc --search --rates 0.01,0.001 --decays 0 --seeds 2
      fognn reproduce cluster --ray 10.0.0.1:6379
    """
    from fognn.experiments.reproduce import dry_run as commands
    from fognn.experiments.reproduce import reproduce as train_runs
    from fognn.experiments.search import DECAYS, RATES, pair_settings, trials
    from fognn.experiments.tables import plan
    from fognn.training.settings import assignments
    from fognn.utils.files import user_path

    if not search and (rates or decays or pairs):
        raise typer.BadParameter("--rates, --decays and --pairs need --search")
    if pairs and (rates or decays):
        raise typer.BadParameter("--pairs has its own settings; leave out --rates and --decays")
    grid = list(
        itertools.product(
            RATES if rates is None else numbers("reproduce: rates", rates),
            DECAYS if decays is None else numbers("reproduce: decays", decays),
        )
    )
    settings: Any = pair_settings if pairs else lambda _: grid
    values = assignments(change or ())
    if data_folder is not None:
        values["data.folder"] = str(user_path(data_folder).resolve())
    chosen = [name.strip() for name in models.split(",")] if models is not None else None
    planned = plan(table, chosen, seeds, fraction, epochs, ours, values)
    if dry_run:
        first = trials(planned, settings) if search else planned
        print(commands(first, runs, results, again))
        return
    with exit_if_stopped():
        summary = train_runs(
            planned,
            runs,
            results,
            int(workers) if workers.isdigit() else workers,  # type: ignore[arg-type]
            ray,
            quiet,
            settings=settings if search else None,
            again=again,
            shared=shared,
            command=shlex.join(["fognn", *sys.argv[1:]]),
            weights=weights,
        )
    for choice in summary.choices:
        print(f"{choice.label}: lr {choice.lr:g}, weight decay {choice.weight_decay:g}")
    print(summary)
    if summary.failed:
        raise typer.Exit(1)


_FORMS = ("markdown", "latex", "csv")


@app.command()
def table(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help=f"{_TABLES}, claims, rates or compare.",
        ),
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="As markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="As LaTeX, with booktabs.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="As csv, with all digits.")] = False,
    at: Annotated[
        str | None,
        typer.Option(help="Epoch of the figures: last or best. [last; best for images]"),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="Average: over batches or items. [batches; items for images]"),
    ] = None,
    minus: Annotated[
        str | None,
        typer.Option(
            metavar="ROW",
            help="Subtract this row from all others, seed by seed; named as in reproduce --models.",
        ),
    ] = None,
    results: Results = Path("results"),
) -> None:
    """Print a table of the paper with the printed and the measured figures, or all comparisons.

    claims has the claims of the paper and whether they hold here; rates, how much of each gain is
    due to learning rates; compare, the comparisons of fognn compare.

    \b
    Examples:
      fognn table zinc --markdown --at best
      fognn table controls --minus zinc-gcn-wider
      fognn table claims
      fognn table compare
    """
    forms = [name for name, given in zip(_FORMS, (markdown, latex, csv), strict=True) if given]
    if len(forms) > 1:
        raise typer.BadParameter(f"only one of --{' and --'.join(forms)} may be given")
    from fognn.report.tables import report_table

    print(report_table(name, results, forms[0] if forms else "text", at, over, minus))


@app.command()
def verify(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help=f"Some of {_TABLES}.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All tables.")] = False,
    results: Results = Path("results"),
    weights: WeightsFolder = None,
    data_folder: DataFolder = None,
    device: Device = "auto",
) -> None:
    """Evaluate the kept weights of tables on the test split and compare with the ledger.

    A line for each network: its figures at the last epoch (for few-shot images, at the best one),
    as means over batches and over items, in the ledger and here. They must be equal to the last
    digit that tables print. The exit code is 1 if a figure differs, if a file is missing or
    damaged, or if no line of the ledger names it.

    \b
    Examples:
      fognn verify zinc
      fognn verify --all
    """
    from fognn.experiments.kept import verify as find
    from fognn.report.verified import show_verification

    if bool(tables) == everything:
        raise typer.BadParameter("give the names of tables, or --all")
    found = find(tables or None, results, weights, data_folder, device)
    if not show_verification(found):
        raise typer.Exit(1)


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Finished run folders to compare."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="The folder of the ledgers. [results]")
    ] = None,
) -> None:
    """Build a report that opens from disk: the site of all ledgers, or a comparison of runs.

    \b
    Examples:
      fognn report -o report
      fognn report runs/zinc/gcn-seed0 runs/zinc/gcn+fog-seed0 -o comparison
    """
    from fognn.report.site import build_run_report, build_site

    if runs and results is not None:
        raise typer.BadParameter("--results has no effect with run folders: give one of the two")
    print(build_run_report(runs, output) if runs else build_site(results or "results", output))
