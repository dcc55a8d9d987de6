r"""Commands for one run: train, predict."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fognn.cli.app import (
    Checkpoint,
    DataFolder,
    Device,
    Import,
    Quiet,
    RunFolder,
    Threads,
    app,
    exit_if_stopped,
    import_own,
)
from fognn.cli.settings import setting_options


def _list_settings(asked: bool) -> None:
    if asked:
        from fognn.training.config import setting_help, setting_names

        for name in setting_names():
            print(f"{name:<24}{setting_help(name)}")
        print("model.NAME              A setting of the network, see fognn.create_model.")
        raise typer.Exit


@app.command()
@setting_options
def train(
    settings: dict[str, Any],
    data: Annotated[
        str | None,
        typer.Argument(
            help="A dataset (pyg:CLASS/NAME for one of PyG), a csv file of molecules, or a file or "
            "folder of graphs."
        ),
    ] = None,
    model: Annotated[str | None, typer.Argument(help="A network, see fognn models.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed. [0]")] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", "-o", help="The run folder. [runs/DATA/MODEL-seedN]")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, such as model.h1=8. Repeatable."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Settings by name instead of the paper's: modern (10 layers, edge features, "
            "feed-forward blocks, random-walk encodings, AdamW with a cosine)."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Start from the config.yaml of another run.")
    ] = None,
    logger: Annotated[
        str | None, typer.Option(help="tensorboard, mlflow or wandb, in addition to metrics.csv.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Train a run anew that the folder has.")
    ] = False,
    quiet: Quiet = False,
    imported: Import = None,
    listed: Annotated[
        bool,
        typer.Option(
            "--settings",
            callback=_list_settings,
            is_eager=True,
            help="List the settings that --set takes, with their defaults.",
        ),
    ] = False,
) -> None:
    """Train a network, by default with the settings of the paper.

    After Ctrl-C, a kill or a crash, the same command resumes the run. The run folder has
    config.yaml, metrics.csv, log.txt, last.ckpt, best.ckpt and result.json; nothing else is
    written. Settings that have no option here are given with --set; fognn train --settings lists
    them.

    \b
    Examples:
      fognn train zinc gcn+fog --seed 0
      fognn train zinc gin+fog --recipe modern --epochs 100
      fognn train cluster gcn --epochs 20 --set data.fraction=0.1 --set model.channels=64
      fognn train molecules.csv gin+fog --target-column solubility
      fognn train graph.npz gcn+fog --split all
      fognn train pyg:TUDataset/PROTEINS gin+fog
      fognn train --config runs/zinc/gcn+fog-seed0/config.yaml -o again
    """
    from fognn.experiments.train_one import train as run
    from fognn.training.fabric import rank
    from fognn.training.settings import assignments

    import_own(imported)
    with exit_if_stopped():
        result = run(
            data,
            model,
            seed,
            folder,
            recipe=recipe,
            config=config,
            logger=logger,
            quiet=quiet,
            again=again,
            command=shlex.join(["fognn", *sys.argv[1:]]),
            **(settings | assignments(change or ())),
        )
    if rank() == 0:  # under torchrun, only one process prints
        print(f"{result}\n{result.folder}")


@app.command()
def predict(
    run: RunFolder,
    source: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help="A csv file of molecules, or a file of graphs."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The csv file to write.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="In place of INPUT: train, val or test, to score and to predict."),
    ] = None,
    support: Annotated[
        Path | None,
        typer.Option(help="Few-shot network: a folder with one subfolder of images for a class."),
    ] = None,
    query: Annotated[
        Path | None,
        typer.Option(help="Few-shot network: an image to classify, or a folder of images."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Few-shot network: a page to write, with the images.")
    ] = None,
    checkpoint: Checkpoint = None,
    smiles_column: Annotated[
        str | None,
        typer.Option(help="Column of the SMILES strings in a csv file. [that of the training]"),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", help="Skip lines of a csv file that cannot be read. [as in the training]"
        ),
    ] = False,
    data_folder: DataFolder = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Number of graphs or images in a batch. [128]")
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    imported: Import = None,
) -> None:
    """Predict for new graphs: molecules in a csv file, or a .pt or .npz file of graphs; score a
    split of the run's data; or classify images with a few-shot network.

    With --split, the scores of the split are printed, and -o writes its predictions beside the
    truth.

    For a few-shot network, --support names a folder with one subfolder for each of your classes (2
    to 20, and no more than the network was trained for) with a few images each, and --query an
    image or a folder of images. They may have any size and any format that Pillow reads. A
    network of drawings, such as one trained on Omniglot, expects dark ink on light paper.

    \b
    Examples:
      fognn predict runs/zinc/gcn+fog-seed0 molecules.csv -o predictions.csv
      fognn predict runs/zinc/gcn+fog-seed0 --split test -o test.csv
      fognn predict zinc/gcn+fog --split val
      fognn predict RUN --support my_classes --query photos -o answers.csv --html answers.html
    """
    import_own(imported)
    if support is not None or query is not None:
        if support is None or query is None or source is not None:
            raise typer.BadParameter("--support and --query must be given for images, not INPUT")
        from fognn.report.few_shot import prediction_table, write_prediction
        from fognn.training.few_shot_prediction import predict_images

        size = batch_size or 128
        images = predict_images(run, support, query, checkpoint, size, device, threads)
        write_prediction(images, output, html)
        print("\n".join([*images.notes, prediction_table(images)]))
        for path in (output, html):
            if path is not None:
                print(f"{path}: {len(images.queries):,} predictions")
        return
    if (source is None) == (split is None):
        raise typer.BadParameter("INPUT or --split must be given; --support, --query for images")
    if split is None and output is None:
        raise typer.BadParameter("--output must be given for graphs")
    from fognn.training.evaluation import evaluate
    from fognn.training.prediction import predict as predict_run

    if split is not None:
        scores = evaluate(run, split, checkpoint, device, threads, data_folder, batch_size)
        for name, value in scores.items():
            print(f"{split}_{name}: {value:.6g}")
    if output is not None:
        found = predict_run(
            run,
            source,
            split=split,
            checkpoint=checkpoint,
            smiles_column=smiles_column,
            skip_bad=skip_bad or None,
            batch_size=batch_size or 128,
            device=device,
            threads=threads,
            data=data_folder,
        )
        found.to_csv(output)
        print(f"{output}: {len(found):,} predictions")
