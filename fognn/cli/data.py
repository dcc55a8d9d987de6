r"""Commands about datasets."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fognn.cli.app import App, DataFolder, app

generate = App(
    help="Generate data.\n\nExample: fognn generate tsp --graphs 1000 -o data/tsp/tsp_train.npz",
    no_args_is_help=True,
)
app.add_typer(generate, name="generate")


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="A dataset, or your own csv file of molecules.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split: train, val or test.")] = None,
    data_folder: DataFolder = None,
    draw: Annotated[
        int, typer.Option(min=0, max=40, help="Number of graphs to draw; 0 for none.")
    ] = 8,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The .png or .html file to draw. [NAME.png]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed that selects the graphs to draw.")] = 0,
    smiles_column: Annotated[
        str | None, typer.Option(help="Column of the SMILES strings in a csv file. [smiles]")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(help="Column to learn in a csv file.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip lines of a csv file that cannot be read.")
    ] = False,
) -> None:
    """List all datasets, or describe and draw one, or your own molecules.

    PATTERN and CLUSTER are generated on first use, which takes seconds.

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
    from fognn.report.data import DrawOptions, report_csv, report_dataset, report_datasets
    from fognn.utils.memory import MemoryLimitError, memory_errors, source_too_large

    if name is None:
        _check_unused(csv_options | drawing_options, "all datasets are listed; name one")
        print(report_datasets(data_folder))
        return
    if output is not None and not draw:
        _check_unused({"-o": True}, "--draw is 0")
    too_large: Callable[[str], Any]
    if name.lower().endswith(".csv"):
        dataset_options = {"--split": split is not None, "--data": data_folder is not None}
        _check_unused(dataset_options, f"{name} is a csv file")
        options = DrawOptions(draw, output, seed)
        lines = report_csv(name, smiles_column or "smiles", target_column, skip_bad, options)
        too_large = source_too_large(name)
    else:
        from fognn.data.catalog import dataset_info

        _check_unused(csv_options, f"{name} is not a csv file")
        options = DrawOptions(draw, output, seed)
        info = dataset_info(name)
        lines = report_dataset(info, split, data_folder, options)
        fewer = f"read one split (--split {info.splits[-1]})" if info.splits and not split else ""
        too_large = partial(
            MemoryLimitError, lower=fewer or "this needs a machine with more memory"
        )
    with memory_errors(too_large):
        for line in lines:
            print(line, flush=True)


@generate.command()
def tsp(
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    graphs: Annotated[int, typer.Option(min=1, help="Number of instances.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "train",
    seed: Annotated[int, typer.Option(help="The seed.")] = 0,
    seconds: Annotated[float, typer.Option(help="Time of the solver for each instance.")] = 0.1,
    fewest: Annotated[int, typer.Option(help="Points of the smallest instance.")] = 50,
    most: Annotated[int, typer.Option(help="Points of the largest instance.")] = 500,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
) -> None:
    """Generate TSP instances with good tours, found by a heuristic solver.

    An interrupted command resumes when it is given again.

    \b
    Example:
      fognn generate tsp --graphs 1000 --split val --seconds 0.1 -o data/tsp/tsp_val.npz
    """
    from fognn.data.tsp_generator import generate_tsp

    path = generate_tsp(output, graphs, split, seed, (fewest, most), seconds, workers)
    print(f"{path}: {graphs:,} instances")


def _check_unused(options: dict[str, bool], why: str) -> None:
    r"""Raises if an option was given that would have no effect."""
    for option, given in options.items():
        if given:
            raise typer.BadParameter(f"{option} has no effect here: {why}")
