r"""Commands about datasets."""

from pathlib import Path
from typing import Annotated

import typer

from fognn.cli.app import DataFolder, app

generate = typer.Typer(
    help="Generate data.\n\nExample: fognn generate tsp --graphs 1000 -o data/tsp/tsp_train.npz",
    no_args_is_help=True,
)
app.add_typer(generate, name="generate")


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="A dataset, or a csv file of your own molecules.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split: train, val or test.")] = None,
    data_folder: DataFolder = None,
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
    from fognn.report.drawings import DrawOptions, report_csv, report_dataset, report_datasets

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

    Runs on all cores. Called again after an interruption, it resumes where it stopped.

    \b
    Example:
      fognn generate tsp --graphs 1000 --split val --seconds 0.1 -o data/tsp/tsp_val.npz
    """
    from fognn.datasets.tsp_generator import generate_tsp

    path = generate_tsp(output, graphs, split, seed, (fewest, most), seconds, workers)
    print(f"{path}: {graphs:,} instances")


def _refuse(options: dict[str, bool], why: str) -> None:
    r"""Options that would have no effect are a mistake of the user, not a wish to ignore."""
    for option, given in options.items():
        if given:
            raise typer.BadParameter(f"{option} has no meaning here: {why}")
