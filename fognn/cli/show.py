r"""Commands that print information: models, info."""

from typing import Annotated

import typer

from fognn.cli.app import app


@app.command()
def models(
    pattern: Annotated[
        str, typer.Argument(help="Shell pattern for the names, such as '*fog*'.")
    ] = "*",
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
