r"""Commands about datasets."""

from pathlib import Path
from typing import Annotated

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
        str | None,
        typer.Argument(help="A dataset; or your own csv file of molecules, or graphs."),
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
        str, typer.Option(help="csv file: the column of the SMILES strings.")
    ] = "smiles",
    target_column: Annotated[
        str | None, typer.Option(help="csv file: the column to learn.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="csv file: skip lines that cannot be read.")
    ] = False,
) -> None:
    """List all datasets, or describe and draw one, or your own data: sizes, features, the kind of
    the targets and their balance, splits, skipped lines.

    PATTERN and CLUSTER are generated on first use, which takes seconds; ZINC, TSP, IMDB-MULTI and
    Omniglot are downloaded.

    \b
    Examples:
      fognn data
      fognn data zinc --split test -o zinc.html
      fognn data my_molecules.csv --target-column solubility --skip-bad
      fognn data graphs.npz
    """
    from fognn.data.catalog import dataset_info
    from fognn.report.data import DrawOptions, report_dataset, report_datasets, report_user_data
    from fognn.training.config import DataConfig
    from fognn.training.user_data import is_user_data

    if name is None:
        print(report_datasets(data_folder))
        return
    options = DrawOptions(draw, output, seed)
    if is_user_data(DataConfig(name)):
        if split is not None:
            raise typer.BadParameter("--split is for the paper's datasets")
        lines = report_user_data(name, smiles_column, target_column, skip_bad, data_folder, options)
    else:
        lines = report_dataset(dataset_info(name), split, data_folder, options)
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
