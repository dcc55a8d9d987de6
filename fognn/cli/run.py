r"""Commands that train and predict: train, predict, compare."""

import shlex
import sys
from pathlib import Path
from typing import Any

from typer import Argument, BadParameter, Exit, Option

from fognn.cli import options
from fognn.cli.options import app
from fognn.utils.own_code import import_file


def _list_settings(asked: bool) -> None:
    if asked:
        from fognn.training.config import SETTING_NAMES, setting_help

        for name in SETTING_NAMES:
            print(f"{name:<24}{setting_help(name)}")
        print("model.NAME              A setting of the network, see fognn.create_model.")
        raise Exit


@app.command()
@options.setting_options
def train(
    settings: dict[str, Any],
    data: str | None = Argument(
        None, help="A dataset, a csv of molecules, a file or folder of graphs, or pyg:CLASS/NAME."
    ),
    model: str | None = Argument(None, help="A network, see fognn models."),
    seed: int | None = Option(None, min=0, help="The seed. [0]"),
    folder: Path | None = Option(
        None, "--folder", "-o", help="The run folder. [runs/DATA/MODEL-seedN]"
    ),
    recipe: str | None = Option(None, help="Settings by name instead of the paper's: modern."),
    config: Path | None = Option(None, help="Start from the config.yaml of another run."),
    logger: str | None = Option(None, help="tensorboard, beside metrics.csv."),
    again: bool = Option(False, "--again", help="Train a run anew that the folder has."),
    quiet: options.Quiet = False,
    imported: options.Import = None,
    listed: bool = Option(
        False,
        "--settings",
        callback=_list_settings,
        is_eager=True,
        help="List the settings that --set takes, with their defaults.",
    ),
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
    from fognn.training.environment import rank

    if imported is not None:
        import_file(imported)
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
        **settings,
    )
    if rank() == 0:  # under torchrun, only one process prints
        print(f"{result}\n{result.folder}")


@app.command()
def predict(
    run: Path = Argument(
        metavar="RUN", help="A run folder, a checkpoint in one, or kept weights: zinc/gcn+fog."
    ),
    source: str | None = Argument(
        None, metavar="INPUT", help="A csv file of molecules, or a file of graphs."
    ),
    output: Path | None = Option(None, "--output", "-o", help="The csv file to write."),
    split: str | None = Option(
        None, help="In place of INPUT: train, val or test, to score and to predict."
    ),
    support: Path | None = Option(
        None, help="Few-shot network: a folder with one subfolder of images for a class."
    ),
    query: Path | None = Option(
        None, help="Few-shot network: an image to classify, or a folder of images."
    ),
    checkpoint: str | None = Option(
        None, help="best (validation metric) or last (epoch). [best; last for kept weights]"
    ),
    smiles_column: str | None = Option(
        None, help="csv file: the column of the SMILES strings. [as in the training]"
    ),
    skip_bad: bool = Option(
        False, "--skip-bad", help="csv file: skip lines that give no graph. [as in the training]"
    ),
    data_folder: options.DataFolder = None,
    batch_size: int = Option(128, min=1, help="Number of graphs or images in a batch."),
    device: options.Device = "auto",
    imported: options.Import = None,
) -> None:
    """Predict for new graphs: molecules in a csv file, or a .pt or .npz file of graphs; score a
    split of the run's data; or classify images with a few-shot network.

    With --split, the scores of the split are printed, and -o writes its predictions beside the
    truth.

    For a few-shot network, --support names a folder with one subfolder for each of your classes
    with a few images each, and --query an image or a folder of images.

    \b
    Examples:
      fognn predict runs/zinc/gcn+fog-seed0 molecules.csv -o predictions.csv
      fognn predict runs/zinc/gcn+fog-seed0 --split test -o test.csv
      fognn predict zinc/gcn+fog --split val
      fognn predict RUN --support my_classes --query photos -o answers.csv
    """
    if imported is not None:
        import_file(imported)
    if support is not None or query is not None:
        if support is None or query is None or source is not None:
            raise BadParameter("--support and --query must be given for images, not INPUT")
        from fognn.report.tables import answers_table
        from fognn.training.few_shot_prediction import predict_images

        images = predict_images(run, support, query, checkpoint, batch_size, device)
        print(answers_table(images))
        if output is not None:
            images.to_csv(output)
        return
    if (source is None) == (split is None):
        raise BadParameter("INPUT or --split must be given; --support, --query for images")
    if split is None and output is None:
        raise BadParameter("--output must be given for graphs")
    from fognn.training.prediction import evaluate
    from fognn.training.prediction import predict as predict_run

    how: dict[str, Any] = {"checkpoint": checkpoint, "batch_size": batch_size}
    how |= {"device": device, "data": data_folder}
    if split is not None:
        scores = evaluate(run, split, **how)
        for name, value in scores.items():
            print(f"{split}_{name}: {value:.6g}")
    if output is not None:
        how |= {"smiles_column": smiles_column, "skip_bad": skip_bad or None}
        found = predict_run(run, source, split=split, **how)
        found.to_csv(output)
        print(f"{output}: {len(found):,} predictions")


@app.command()
@options.setting_options
def compare(
    settings: dict[str, Any],
    data: str = Argument(help="A dataset, a csv of molecules, or a file or folder of graphs."),
    hosts: str = Option("gcn,gin", help="The networks to put FOG beside; fog is FOG alone."),
    seeds: int = Option(5, help="Number of seeds."),
    budget: int = Option(100_000, help="Parameters of each network, within 1 %."),
    rates: str | None = Option(
        None, help="Learning rates that each network tries. [0.003,0.001,0.0003, or --lr]"
    ),
    name: str | None = Option(None, help="Name of the comparison. [that of the data]"),
    output: Path | None = Option(
        None, "--output", "-o", help="The folder of the pages. [RUNS/compare/NAME/report]"
    ),
    workers: options.Workers = "1",
    ray: options.Ray = None,
    shared: options.Shared = False,
    runs: options.Runs = Path("runs"),
    results: options.Results = Path("results"),
    imported: options.Import = None,
    quiet: options.Quiet = False,
) -> None:
    """Find out whether FOG helps on your data.

    Each host is compared with the same host beside FOG: with the same number of parameters, the
    same splits, seeds and epochs, and the same learning rates to choose from by validation. After
    an interruption, the same command resumes. Each finished run is added to
    results/compare/NAME.jsonl.

    \b
    Examples:
      fognn compare molecules.csv --target-column solubility --hosts gcn,gin --seeds 5
      fognn compare graphs.npz --budget 50000 --epochs 100 --workers auto
      fognn compare graphs.npz --hosts mine --import my_layers.py
    """
    from fognn.experiments.compare import compare as compare_networks
    from fognn.report.forms import check_output
    from fognn.report.site import write_comparisons

    if output is not None:
        check_output(output)  # before hours of training
    result = compare_networks(
        data,
        [host.strip() for host in hosts.split(",")],
        seeds,
        budget,
        rates=options.numbers("compare: rates", rates),
        name=name,
        runs=runs,
        results=results,
        import_file=imported,
        quiet=quiet,
        command=shlex.join(["fognn", *sys.argv[1:]]),
        **options.machines(workers, ray, shared),
        **settings,
    )
    print(result)
    if not len(result.frame):
        raise Exit(1)
    print("The pages:", write_comparisons(result, output or result.runs / "report"))
