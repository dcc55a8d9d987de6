r"""Commands for the tables of the paper and of our own: reproduce, table, collect, verify,
report."""

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

# The paper's tables, then our own.
_TABLES = "pattern, cluster, zinc, tsp, few-shot, widths, limits, omniglot, cifar-fs, controls"


@app.command()
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help=f"{_TABLES} or modern."),
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
        bool, typer.Option("--dry-run", help="List the runs and their estimated times.")
    ] = False,
    workers: Workers = "1",
    ray: Ray = None,
    shared: Shared = None,
    export_: Annotated[
        str | None, typer.Option("--export", help="slurm: write a job array instead of training.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for --export.")] = Path(
        "slurm"
    ),
    runs: Runs = Path("runs"),
    results: Results = Path("results"),
    weights: WeightsFolder = None,
    data_folder: DataFolder = None,
    quiet: Quiet = False,
) -> None:
    """Train the runs of a table of the paper, or of our own: omniglot and cifar-fs.

    Runs that are finished, or in the ledger, are skipped; unfinished ones are resumed. Each
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
      fognn reproduce tsp --export slurm -o jobs
    """
    from fognn.experiments.estimate import estimate
    from fognn.experiments.fair import pair_settings
    from fognn.experiments.reproduce import reproduce as sweep
    from fognn.experiments.reproduce import unfinished
    from fognn.experiments.search import DECAYS, RATES
    from fognn.experiments.search_runs import search as searched
    from fognn.experiments.search_runs import trials
    from fognn.experiments.slurm import export_slurm
    from fognn.experiments.tables import plan
    from fognn.training.settings import assignments
    from fognn.utils.files import user_path

    if export_ not in (None, "slurm"):
        raise typer.BadParameter(f"--export must be slurm, got {export_!r}")
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
    settings = pair_settings if pairs else lambda _: grid
    values = assignments(change or ())
    if data_folder is not None:
        values["data.folder"] = str(user_path(data_folder).resolve())
    chosen = [name.strip() for name in models.split(",")] if models is not None else None
    planned = plan(table, chosen, seeds, fraction, epochs, ours, values)
    first = trials(planned, settings) if search else planned
    count: Any = int(workers) if workers.isdigit() else workers
    command = shlex.join(["fognn", *sys.argv[1:]])
    if dry_run:
        print(estimate(first, runs, results, count, again=again))
        return
    if export_ is not None:
        later = shlex.join(_without(["fognn", *sys.argv[1:]], "--export", "-o", "--output"))
        left = unfinished(first, runs, results, again)
        print(export_slurm(left, output, runs, command=later))
        return

    def train_all(some: Any) -> Any:
        return sweep(
            some,
            runs,
            results,
            count,
            ray,
            quiet,
            again=again,
            shared=shared,
            command=command,
            weights=weights,
        )

    with exit_if_stopped():
        if search:
            planned, choices = searched(planned, results, train_all, settings)
            for choice in choices:
                print(f"{choice.label}: lr {choice.lr:g}, weight decay {choice.weight_decay:g}")
        summary = train_all(planned)
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
            help=f"{_TABLES}, modern, claims, rates or compare.",
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
def collect(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Finished run folders.")],
    results: Results = Path("results"),
    weights: WeightsFolder = None,
) -> None:
    """Add finished runs, such as those of another machine, to the ledger.

    For a run of the tables whose row has no weights, or those of a higher seed, the weights of its
    last epoch (for few-shot images, of its best one) are kept in weights/TABLE.

    \b
    Example:
      fognn collect elsewhere/runs/zinc/gcn+fog-seed*
    """
    from fognn.experiments.keep import enter

    for folder in runs:
        for key in enter(folder, results, weights):
            print(key)


@app.command()
def verify(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help=f"{_TABLES} or modern.",
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
    from fognn.experiments.verification import verify as find
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


def _without(arguments: list[str], *options: str) -> list[str]:
    r"""Returns the arguments of a command without some options and their values."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in options:
            skip = not skip
        elif not argument.startswith(tuple(f"{option}=" for option in options)):
            kept.append(argument)
    return kept
