r"""Commands for the tables of the paper and of our own: reproduce, table, verify, report."""

import itertools
import shlex
import sys
from pathlib import Path

from typer import Argument, BadParameter, Exit, Option

from fognn.cli import options
from fognn.cli.options import app
from fognn.experiments.rows import TABLES

_TABLES = ", ".join(TABLES)


@app.command()
def reproduce(
    table: str = Argument(help=f"One of {_TABLES}."),
    models: str | None = Option(
        None, help="Only these rows, such as gcn,gcn+fog or '*fog*'; variants: gcn-sym."
    ),
    seeds: int = Option(1, min=1, help="Number of seeds, from 0."),
    fraction: float | None = Option(None, help="Fraction of each split to use. [all]"),
    epochs: int | None = Option(None, help="Maximum number of epochs. [as in the paper]"),
    change: options.Change = None,
    ours: bool = Option(True, help="Train our variants of the paper's rows, too."),
    search: bool = Option(False, "--search", help="First search learning rate and decay."),
    rates: str | None = Option(None, help="Rates of --search. [0.01,0.005,0.001,0.0005]"),
    decays: str | None = Option(None, help="Weight decays of --search. [0.001,0.000001,0]"),
    dry_run: bool = Option(False, "--dry-run", help="List the commands of the runs that are left."),
    workers: options.Workers = "1",
    ray: options.Ray = None,
    shared: options.Shared = False,
    runs: options.Runs = Path("runs"),
    results: options.Results = Path("results"),
    data_folder: options.DataFolder = None,
    quiet: options.Quiet = False,
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
      fognn reproduce zinc --search --rates 0.01,0.001 --decays 0 --seeds 2
      fognn reproduce cluster --ray 10.0.0.1:6379
    """
    from fognn.experiments.reproduce import dry_run as commands
    from fognn.experiments.reproduce import reproduce as train_runs
    from fognn.experiments.search import DECAYS, RATES
    from fognn.experiments.tables import plan
    from fognn.training.config import assignments
    from fognn.utils.files import user_path

    if not search and (rates or decays):
        raise BadParameter("--rates and --decays need --search")
    tries = itertools.product(
        options.numbers("reproduce: rates", rates) or RATES,
        options.numbers("reproduce: decays", decays) or DECAYS,
    )
    settings = list(tries) if search else None
    values = assignments(change or ())
    if data_folder is not None:
        values["data.folder"] = str(user_path(data_folder).resolve())
    chosen = [name.strip() for name in models.split(",")] if models is not None else None
    planned = plan(table, chosen, seeds, fraction, epochs, ours, values)
    if dry_run:
        print(commands(planned, runs, results, settings))
        return
    summary = train_runs(
        planned,
        runs,
        results,
        quiet=quiet,
        settings=settings,
        command=shlex.join(["fognn", *sys.argv[1:]]),
        **options.machines(workers, ray, shared),
    )
    for choice in summary.choices:
        print(f"{choice.label}: lr {choice.lr:g}, weight decay {choice.weight_decay:g}")
    print(summary)
    if summary.failed:
        raise Exit(1)


@app.command()
def table(
    name: str = Argument(metavar="TABLE", help=f"{_TABLES}, claims, rates or compare."),
    markdown: bool = Option(False, "--markdown", help="As markdown."),
    latex: bool = Option(False, "--latex", help="As LaTeX, with booktabs."),
    csv: bool = Option(False, "--csv", help="As csv, with all digits."),
    at: str | None = Option(None, help="Epoch: last or best. [last; best for images]"),
    over: str | None = Option(
        None, help="Average: over batches or items. [batches; items for images]"
    ),
    minus: str | None = Option(
        None, metavar="ROW", help="Subtract this row from all others, seed by seed."
    ),
    results: options.Results = Path("results"),
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
    from fognn.report.tables import report_table

    given = {"markdown": markdown, "latex": latex, "csv": csv}
    forms = [form for form, asked in given.items() if asked]
    if len(forms) > 1:
        raise BadParameter(f"only one of --{' and --'.join(forms)} may be given")
    print(report_table(name, results, forms[0] if forms else "text", at, over, minus))


@app.command()
def report(
    output: Path = Option(..., "--output", "-o", help="The folder to write."),
    runs: list[Path] | None = Argument(None, metavar="[RUN]...", help="Run folders to compare."),
    results: options.Results = Path("results"),
) -> None:
    """Build a report that opens from disk: the site of all ledgers, or a comparison of runs.

    \b
    Examples:
      fognn report -o report
      fognn report runs/zinc/gcn-seed0 runs/zinc/gcn+fog-seed0 -o comparison
    """
    from fognn.report.site import build_run_report, build_site

    print(build_run_report(runs, output) if runs else build_site(results, output))


@app.command()
def verify(
    tables: list[str] | None = Argument(None, metavar="[TABLE]...", help=f"Some of {_TABLES}."),
    everything: bool = Option(False, "--all", help="All tables."),
    results: options.Results = Path("results"),
    data_folder: options.DataFolder = None,
    device: options.Device = "auto",
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
    from fognn.experiments.ledger import verify as find

    if bool(tables) == everything:
        raise BadParameter("give the names of tables, or --all")
    print(f"{'network':<28}  seed  {'ledger':<15}  here")
    outcomes = []
    for check in find(tables or None, results, data_folder, device):
        ledger, here = (
            "  ".join(f"{value:.{check.digits}f}" for value in figures)
            for figures in (check.ledger, check.here)
        )
        outcome = check.problem or ("ok" if check.ok else "DIFFERS")
        line = f"{check.name:<28}  {check.seed!s:>4}  {ledger:<15}  {here:<15}  {outcome}"
        print(line, flush=True)
        outcomes.append(check.ok)
    count = f"{sum(outcomes)} of {len(outcomes)} networks"
    print(f"{count} agree with the ledger to the last printed digit")
    if not all(outcomes):
        raise Exit(1)
