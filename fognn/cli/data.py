r"""Commands about datasets."""

from pathlib import Path
from typing import Annotated

import typer

from fognn.cli.app import DataFolder, app


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
