r"""Commands about one run: train, evaluate, predict, export."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fognn.cli.app import Checkpoint, DataFolder, Device, RunFolder, app


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
    data_folder: DataFolder = None,
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
    from fognn.paper.train_one import train as run
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
    run: RunFolder,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    checkpoint: Checkpoint = "best",
    data_folder: DataFolder = None,
    device: Device = "auto",
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
    run: RunFolder,
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A csv file of molecules, or graphs.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The csv file to write.")],
    checkpoint: Checkpoint = "best",
    smiles_column: Annotated[
        str, typer.Option(help="Column of the SMILES strings in a csv file.")
    ] = "smiles",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out the lines of a csv file that are broken.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Graphs at once.")] = 128,
    device: Device = "auto",
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
def export(
    run: RunFolder,
    folder: Annotated[Path, typer.Option("--folder", "-o", help="The folder to write.")],
    checkpoint: Checkpoint = "best",
) -> None:
    """Write a trained network as a folder of the Hugging Face hub, offline.

    \b
    Example:
      fognn export runs/zinc-gcn+fog-seed0 -o zinc-gcn-fog
    """
    from fognn.training.export import export as write

    print(write(run, folder, checkpoint))
