r"""The command that compares networks with and without FOG: compare."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fognn.cli.app import (
    Import,
    Quiet,
    Ray,
    Results,
    Runs,
    Shared,
    Workers,
    app,
    exit_if_stopped,
    import_own,
    numbers,
)
from fognn.cli.settings import setting_options


@app.command()
@setting_options
def compare(
    settings: dict[str, Any],
    data: Annotated[
        str,
        typer.Argument(help="A dataset, a csv file of molecules, or a file or folder of graphs."),
    ],
    hosts: Annotated[
        str,
        typer.Option(help="The networks to put FOG beside, see fognn models; fog is FOG alone."),
    ] = "gcn,gin",
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds, from 0; the most of them with --time. [5]")
    ] = None,
    budget: Annotated[int, typer.Option(help="Parameters of each network, within 1 %.")] = 100_000,
    rates: Annotated[
        str | None,
        typer.Option(help="Learning rates that each network tries. [0.003,0.001,0.0003, or --lr]"),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Train as many seeds as this time allows, such as 30m or 2h.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the comparison. [that of the data]")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of all networks, such as model.layers=8. Repeatable."
        ),
    ] = None,
    workers: Workers = "1",
    ray: Ray = None,
    shared: Shared = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder of the pages. [RUNS/compare/NAME/report]"),
    ] = None,
    runs: Runs = Path("runs"),
    results: Results = Path("results"),
    imported: Import = None,
    quiet: Quiet = False,
) -> None:
    """Find out whether FOG helps on your data.

    Each host is compared with the same host beside FOG: with the same number of parameters, the
    same splits, seeds and epochs, and the same learning rates to choose from by validation. After
    an interruption, the same command resumes. Each finished run is added to
    results/compare/NAME.jsonl.

    \b
    Examples:
      fognn compare molecules.csv --target-column solubility --hosts gcn,gin --seeds 5
      fognn compare graphs.npz --budget 50000 --epochs 100 --time 30m --workers auto
      fognn compare graphs.npz --hosts mine --import my_layers.py
    """
    from fognn.experiments.compare import compare as compare_networks
    from fognn.report.pages import check_output
    from fognn.report.site import write_comparisons
    from fognn.training.settings import assignments

    import_own(imported)
    if output is not None:
        check_output(output)  # before hours of training
    with exit_if_stopped():
        result = compare_networks(
            data,
            [host.strip() for host in hosts.split(",")],
            seeds,
            budget,
            rates=None if rates is None else numbers("compare: rates", rates),
            time=time,
            name=name,
            workers=int(workers) if workers.isdigit() else workers,  # type: ignore[arg-type]
            ray=ray,
            shared=shared,
            runs=runs,
            results=results,
            quiet=quiet,
            command=shlex.join(["fognn", *sys.argv[1:]]),
            **(settings | assignments(change or ())),
        )
    print(result)
    if not len(result.frame):
        raise typer.Exit(1)
    pages = output or result.runs / "report"
    print("The pages:", write_comparisons(result, pages))
