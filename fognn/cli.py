r"""The command ``fognn``: parses, calls one function, prints.

What a command needs is imported inside it, so that help is quick and no command
loads what another one needs.
"""

import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    help="Second-order message passing on graphs.\n\nExample: fognn data zinc",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
generate = typer.Typer(
    help="Generate data.\n\nExample: fognn generate tsp --graphs 1000 -o data/tsp/tsp_train.npz",
    no_args_is_help=True,
)
app.add_typer(generate, name="generate")


def main() -> None:
    r"""Runs the command. An error that a user can cause is one line and exit code 1."""
    warnings.showwarning = _one_line
    try:
        app(prog_name="fognn")
    # An ImportError names the extra to install.
    except (ValueError, RuntimeError, ImportError, OSError) as error:
        from fognn.utils.errors import FileError, TrainingError

        known = isinstance(error, FileError | TrainingError)
        if isinstance(error, RuntimeError) and not known:
            raise  # no mistake of the user
        print("fognn:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(1)


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    print("fognn: warning:", " ".join(str(message).split()), file=sys.stderr)


def _version(asked: bool) -> None:
    if asked:
        from fognn import __version__

        print(f"fognn {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_Data = Annotated[
    Path | None, typer.Option("--data", help="The folder with real files, else $FOGNN_DATA.")
]


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="A dataset, or a csv file of your own molecules.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split: train, val or test.")] = None,
    data_folder: _Data = None,
    draw: Annotated[
        int, typer.Option(min=0, max=40, help="How many graphs are drawn; 0 for none.")
    ] = 8,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to draw: a .png or .html file. [NAME.png]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which graphs are drawn.")] = 0,
    smiles_column: Annotated[
        str | None, typer.Option(help="Column of the SMILES strings in a csv file. [smiles]")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(help="Column of the number to learn in a csv file.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out the lines of a csv file that are broken.")
    ] = False,
) -> None:
    """List all datasets, or look at one, or at your own molecules.

    PATTERN and CLUSTER are generated the first time, which takes seconds.

    \b
    Examples:
      fognn data
      fognn data zinc --split test -o zinc.html
      fognn data my_molecules.csv --target-column solubility --skip-bad
    """
    csv_options = {
        "--smiles-column": smiles_column is not None,
        "--target-column": target_column is not None,
        "--skip-bad": skip_bad,
    }
    drawing_options = {"-o": output is not None, "--split": split is not None}
    from fognn.report.data_report import DrawOptions, report_csv, report_dataset, report_datasets

    if name is None:
        _refuse(csv_options | drawing_options, "all datasets are listed: name one of them first")
        print(report_datasets(data_folder))
        return
    if output is not None and not draw:
        _refuse({"-o": True}, "--draw is 0")
    if name.lower().endswith(".csv"):
        _refuse({"--split": split is not None, "--data": data_folder is not None}, "of a csv file")
        options = DrawOptions(draw, output, seed)
        lines = report_csv(name, smiles_column or "smiles", target_column, skip_bad, options)
    else:
        from fognn.datasets.catalog import dataset_info

        _refuse(csv_options, f"{name} is not a csv file")
        options = DrawOptions(draw, output, seed)
        lines = report_dataset(dataset_info(name), split, data_folder, options)
    for line in lines:
        print(line, flush=True)


_Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
_Checkpoint = Annotated[str, typer.Option(help="best (by the validation metric) or last (epoch).")]
_Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a checkpoint in one.")]


@app.command()
def train(
    data: Annotated[
        str | None,
        typer.Argument(help="A dataset, a csv file of molecules, a file or folder of graphs."),
    ] = None,
    model: Annotated[str | None, typer.Argument(help="A network: see fognn models.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed. [0]")] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", "-o", help="The run folder. [runs/DATA-MODEL-seedN]")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="The most epochs.")] = None,
    lr: Annotated[float | None, typer.Option(help="The first learning rate.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="The L2 weight.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Graphs in a step.")] = None,
    fraction: Annotated[
        float | None, typer.Option(help="How much of each split, from its beginning.")
    ] = None,
    fold: Annotated[int | None, typer.Option(help="Only this fold, of IMDB-MULTI.")] = None,
    target_column: Annotated[
        str | None, typer.Option(help="Column of the number to learn in a csv file.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of config.yaml, as model.h1=8. Repeatable."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Repeat a run from its config.yaml alone.")
    ] = None,
    data_folder: _Data = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of each process.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Processes that share each batch.")] = None,
    precision: Annotated[
        str | None, typer.Option(help="32-true, 64-true, 16-mixed or bf16-mixed.")
    ] = None,
    compile_: Annotated[
        bool | None, typer.Option("--compile", help="Compile the network with torch.compile.")
    ] = None,
    logger: Annotated[
        str | None, typer.Option(help="tensorboard, mlflow or wandb, beside metrics.csv.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train a network by the paper's protocol.

    Stopped by Ctrl-C, killed or crashed, it goes on when the same command is given again.
    The run folder has config.yaml, metrics.csv, log.txt, last.ckpt, best.ckpt and result.json.

    \b
    Examples:
      fognn train zinc gcn+fog --seed 0
      fognn train cluster gcn --fraction 0.1 --epochs 20 --set model.channels=64
      fognn train molecules.csv gin+fog --target-column solubility
      fognn train --config runs/zinc-gcn+fog-seed0/config.yaml -o again
    """
    from fognn.paper.training import train as run
    from fognn.training.fabric import rank
    from fognn.training.values import assignments
    from fognn.utils.errors import Stopped

    values = assignments(change or ())
    if target_column is not None:
        values["data.target"] = target_column
    try:
        result = run(
            data,
            model,
            seed,
            folder,
            epochs=epochs,
            lr=lr,
            weight_decay=weight_decay,
            batch_size=batch_size,
            fraction=fraction,
            fold=fold,
            precision=precision,
            device=device,
            threads=threads,
            ranks=ranks,
            compile=compile_,
            data_folder=data_folder,
            values=values,
            config=config,
            logger=logger,
            quiet=quiet,
            command=shlex.join(["fognn", *sys.argv[1:]]),
        )
    except Stopped as stop:
        print("fognn:", stop, file=sys.stderr)
        raise typer.Exit(130) from stop
    if rank() == 0:  # of several that torchrun started, one speaks
        print(f"{result}\n{result.folder}")


@app.command()
def evaluate(
    run: _Run,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    checkpoint: _Checkpoint = "best",
    data_folder: _Data = None,
    device: _Device = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads.")] = None,
) -> None:
    """Evaluate a trained run on one of its splits.

    \b
    Example:
      fognn evaluate runs/zinc-gcn+fog-seed0 --split val
    """
    from fognn.training.evaluation import evaluate as scores_of

    for name, value in scores_of(run, split, checkpoint, device, threads, data_folder).items():
        print(f"{split}_{name}: {value:.6g}")


@app.command()
def predict(
    run: _Run,
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A csv file of molecules, or graphs.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The csv file to write.")],
    checkpoint: _Checkpoint = "best",
    smiles_column: Annotated[
        str, typer.Option(help="Column of the SMILES strings in a csv file.")
    ] = "smiles",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out the lines of a csv file that are broken.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Graphs at once.")] = 128,
    device: _Device = "auto",
) -> None:
    """Predict for new graphs: molecules in a csv file, or a .pt or .npz file of graphs.

    \b
    Examples:
      fognn predict runs/zinc-gcn+fog-seed0 molecules.csv -o predictions.csv
      fognn predict runs/tsp-gcn+fog-seed0 graphs.npz -o edges.csv
    """
    from fognn.training.prediction import predict as write

    lines = write(run, source, output, checkpoint, smiles_column, skip_bad, batch_size, device)
    print(f"{output}: {lines:,} predictions")


@app.command()
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help="pattern, cluster, zinc, tsp, few-shot, widths or limits."),
    ],
    models: Annotated[
        str | None,
        typer.Option(help="Only these rows, as gcn,gcn+fog or '*fog*'; ours: gcn-sym ..."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.")] = 1,
    fraction: Annotated[
        float | None, typer.Option(help="How much of each split, from its beginning.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="The most epochs.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of config.yaml, as training.lr=0.01. Repeatable."),
    ] = None,
    ours: Annotated[bool, typer.Option(help="Our own readings beside the paper's rows.")] = True,
    search: Annotated[
        bool, typer.Option("--search", help="First search rate and decay on the paper's grid.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and how long they would take.")
    ] = False,
    workers: Annotated[str, typer.Option(help="Runs at a time; auto finds what is fastest.")] = "1",
    ray: Annotated[
        str | None, typer.Option(help="Train on a Ray cluster: its address, or local.")
    ] = None,
    shared: Annotated[
        bool | None, typer.Option(help="Of Ray: whether all machines see the run folders.")
    ] = None,
    export_: Annotated[
        str | None, typer.Option("--export", help="slurm: write a job array in place of training.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for --export.")] = Path(
        "slurm"
    ),
    runs: Annotated[Path, typer.Option(help="The folder of the run folders.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="The folder of the ledgers.")] = Path("results"),
    data_folder: _Data = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train a table of the paper.

    Finished runs are skipped, half done ones go on. Each finished run is a line in
    results/TABLE.jsonl; fognn table TABLE prints them beside the paper.

    \b
    Examples:
      fognn reproduce zinc --seeds 4 --workers auto
      fognn reproduce zinc --models gcn,gcn+fog --fraction 0.1 --epochs 20 --dry-run
      fognn reproduce cluster --ray 10.0.0.1:6379
      fognn reproduce tsp --export slurm -o jobs
    """
    from fognn.paper.tables import plan
    from fognn.sweep import estimate, export_slurm
    from fognn.sweep import reproduce as sweep
    from fognn.sweep.search_runs import search as searched
    from fognn.sweep.search_runs import trials
    from fognn.training.values import assignments
    from fognn.utils.errors import Stopped

    if export_ not in (None, "slurm"):
        raise typer.BadParameter(f"--export must be slurm, got {export_!r}")
    values = assignments(change or ())
    if data_folder is not None:
        values["data.folder"] = str(data_folder.expanduser().resolve())
    chosen = [name.strip() for name in models.split(",")] if models is not None else None
    planned = plan(table, chosen, seeds, fraction, epochs, ours, values)
    count: Any = int(workers) if workers.isdigit() else workers
    command = shlex.join(["fognn", *sys.argv[1:]])
    if dry_run:
        print(estimate(trials(planned) if search else planned, runs, results, count))
        return
    if export_ is not None:
        again = shlex.join(_without(["fognn", *sys.argv[1:]], "--export", "-o", "--output"))
        print(export_slurm(trials(planned) if search else planned, output, runs, command=again))
        return

    def train_all(some: Any) -> Any:
        return sweep(some, runs, results, count, ray, quiet, shared=shared, command=command)

    try:
        if search:
            planned, choices = searched(planned, results, train_all)
            for choice in choices:
                print(f"{choice.label}: lr {choice.lr:g}, weight decay {choice.weight_decay:g}")
        summary = train_all(planned)
    except Stopped as stop:
        print("fognn:", stop, file=sys.stderr)
        raise typer.Exit(130) from stop
    print(summary)
    if summary.failed:
        raise typer.Exit(1)


@app.command()
def table(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="pattern, cluster, zinc, tsp, few-shot, widths or limits."
        ),
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="As markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="As LaTeX, with booktabs.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="As csv, with all digits.")] = False,
    at: Annotated[str, typer.Option(help="Which epoch's figure: last, or best.")] = "last",
    over: Annotated[str, typer.Option(help="Which average: batches, or items.")] = "batches",
    results: Annotated[Path, typer.Option(help="The folder of the ledgers.")] = Path("results"),
) -> None:
    """Print a table of the paper beside what was measured here.

    \b
    Example:
      fognn table zinc --markdown --at best
    """
    forms = [name for name, given in zip(_FORMS, (markdown, latex, csv), strict=True) if given]
    if len(forms) > 1:
        raise typer.BadParameter(f"only one of --{' and --'.join(forms)} can be printed")
    from fognn.report.result_table import report_table

    print(report_table(name, results, forms[0] if forms else "text", at, over))


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the site.")],
    results: Annotated[Path, typer.Option(help="The folder of the ledgers.")] = Path("results"),
) -> None:
    """Build the report: a site that opens from disk, made of the ledgers.

    \b
    Example:
      fognn report -o site
    """
    from fognn.report.site import build_site

    print(build_site(results, output))


@app.command()
def export(
    run: _Run,
    folder: Annotated[Path, typer.Option("--folder", "-o", help="The folder to write.")],
    checkpoint: _Checkpoint = "best",
) -> None:
    """Write a trained network as a folder of the Hugging Face hub, offline.

    \b
    Example:
      fognn export runs/zinc-gcn+fog-seed0 -o zinc-gcn-fog
    """
    from fognn.training.export import export as write

    print(write(run, folder, checkpoint))


@app.command()
def models(
    pattern: Annotated[str, typer.Argument(help="Only names like this, as '*fog*'.")] = "*",
) -> None:
    """List all networks, and their sizes in the paper.

    \b
    Example:
      fognn models "*+fog"
    """
    from fognn.report.models_report import report_models

    print(report_models(pattern))


@app.command()
def info() -> None:
    """Show versions, threads and devices: what to say in a bug report.

    \b
    Example:
      fognn info
    """
    from fognn.training.environment import report_environment

    print(report_environment())


@generate.command()
def tsp(
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    graphs: Annotated[int, typer.Option(min=1, help="How many instances.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "train",
    seed: Annotated[int, typer.Option(help="The seed.")] = 0,
    seconds: Annotated[float, typer.Option(help="The solver's time an instance.")] = 0.1,
    fewest: Annotated[int, typer.Option(help="Points of the smallest instance.")] = 50,
    most: Annotated[int, typer.Option(help="Points of the largest instance.")] = 500,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many processes. [one a core]")
    ] = None,
) -> None:
    """Generate TSP instances with good tours.

    Runs on all cores. Called again after an interruption, it goes on where it stopped.

    \b
    Example:
      fognn generate tsp --graphs 1000 --split val --seconds 0.1 -o data/tsp/tsp_val.npz
    """
    from fognn.datasets.tsp_generator import generate_tsp

    path = generate_tsp(output, graphs, split, seed, (fewest, most), seconds, workers)
    print(f"{path}: {graphs:,} instances")


_FORMS = ("markdown", "latex", "csv")


def _without(words: list[str], *options: str) -> list[str]:
    r"""A command without some options and their values."""
    kept, skip = [], False
    for word in words:
        if skip or word in options:
            skip = not skip
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept


def _refuse(options: dict[str, bool], why: str) -> None:
    r"""Options that would have no effect are a mistake of the user, not a wish to ignore."""
    for option, given in options.items():
        if given:
            raise typer.BadParameter(f"{option} has no meaning here: {why}")
