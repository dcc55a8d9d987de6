r"""Commands that list what there is: models, info."""

from typing import Annotated

import typer

from fognn.cli.app import app


@app.command()
def models(
    pattern: Annotated[str, typer.Argument(help="Only names like this, as '*fog*'.")] = "*",
) -> None:
    """List all networks, and their sizes in the paper.

    \b
    Example:
      fognn models "*+fog"
    """
    from fognn.report.tables import report_models

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
