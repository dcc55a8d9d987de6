r"""Commands that print information: data, models, info."""

from pathlib import Path

from typer import Argument, BadParameter, Option

from fognn.cli import options
from fognn.cli.options import app


@app.command()
def data(
    name: str | None = Argument(None, help="A dataset; or your own csv of molecules, or graphs."),
    split: str | None = Option(None, help="A dataset of the paper: only train, val or test."),
    data_folder: options.DataFolder = None,
    output: Path | None = Option(
        None, "--output", "-o", help="Draw eight of its graphs to this .png file."
    ),
    smiles_column: str = Option("smiles", help="csv file: the column of the SMILES strings."),
    target_column: str | None = Option(None, help="csv file: the column to learn."),
    skip_bad: bool = Option(False, "--skip-bad", help="csv file: skip lines that give no graph."),
) -> None:
    """List all datasets, or describe and draw one, or your own data: sizes, features, the kind of
    the targets and their balance, splits, skipped lines.

    PATTERN and CLUSTER are generated on first use, which takes seconds; ZINC, TSP, IMDB-MULTI and
    Omniglot are downloaded.

    \b
    Examples:
      fognn data
      fognn data zinc --split test -o zinc.png
      fognn data my_molecules.csv --target-column solubility --skip-bad
      fognn data graphs.npz
    """
    from fognn.data.catalog import dataset_info
    from fognn.report.data import check_picture, report_dataset, report_datasets, report_user_data
    from fognn.training.config import DataConfig
    from fognn.training.data import is_user_data

    if name is None:
        print(report_datasets(data_folder))
        return
    if output is not None:
        check_picture(output)
    if is_user_data(DataConfig(name)):
        if split is not None:
            raise BadParameter("--split is for the paper's datasets")
        columns = {"smiles": smiles_column, "target": target_column, "skip_bad": skip_bad}
        lines = report_user_data(name, columns | {"folder": data_folder}, output)
    else:
        lines = report_dataset(dataset_info(name), split, data_folder, output)
    for line in lines:
        print(line, flush=True)


@app.command()
def models(
    pattern: str = Argument("*", help="Shell pattern for the names, such as '*fog*'."),
) -> None:
    """List all networks with their numbers of parameters in the paper.

    \b
    Example:
      fognn models "*+fog"
    """
    from fognn.report.tables import report_models

    print(report_models(pattern))


@app.command()
def info() -> None:
    """Show versions, threads and devices, for bug reports.

    \b
    Example:
      fognn info
    """
    from fognn.training.environment import report_environment

    print(report_environment())
