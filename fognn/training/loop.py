r"""The training loop of one run, what it shows on standard error, and signals that stop it."""

import hashlib
import math
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning_fabric import Fabric
from torch.nn import Module, Parameter, SyncBatchNorm
from torch.optim import Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau, StepLR
from tqdm import tqdm

from fognn.models import count_parameters
from fognn.training.config import Config, TrainingConfig
from fognn.training.data import RunData, fingerprint, joint_fingerprint
from fognn.training.environment import commit, threads_of, without_denormals
from fognn.training.networks import (
    first_weights,
    read_checkpoint,
    untrained_model,
    write_checkpoint,
)
from fognn.training.objective import Meter, evaluate_model, forward_batch, loss_of
from fognn.training.run_folder import Result, RunFolder, State, summarise
from fognn.utils.errors import Stopped, TrainingError


@without_denormals()
@torch.random.fork_rng(devices=[])  # each step seeds torch
def train_run(
    fabric: Fabric,
    data: RunData,
    folder: Path,
    *,
    module: Module | None,
    command: str,
    quiet: bool,
    logger: str | None,
    again: bool,
) -> Result:
    r"""Trains a single run on this rank, see :func:`fognn.training.fit`."""
    config, training = data.run, data.run.training
    # Before the folder is created, so that invalid settings or data leave no folder.
    net = untrained_model(config, data.task, module)
    train = data.loader("train", fabric.global_rank, fabric.world_size)
    val = data.loader("val")
    # The first rank alone writes files.
    run = RunFolder(folder, config, again) if fabric.is_global_zero else None
    with run or nullcontext(), threads_of(config.machine):
        fabric.barrier()
        if fabric.world_size > 1 and fabric.device.type == "cuda":
            # Statistics of all ranks; on CPUs each rank has its own.
            net = SyncBatchNorm.convert_sync_batchnorm(net)
        compiled: Any = torch.compile(net, dynamic=True) if config.machine.compile else net
        adam = make_optimizer(config, net.parameters())
        schedule = make_schedule(training, adam, len(train))
        model, optimizer = fabric.setup(compiled, adam)
        mark, state, begun = fingerprint(train), State(), "begins"

        # Resume
        if (folder / "last.ckpt").exists():
            saved = read_checkpoint(folder / "last.ckpt")
            if saved.get("data") != mark:
                raise ValueError(
                    f"data {config.data.name!r} have changed since the run in {folder} was "
                    "started: name another folder, or restore the data"
                )
            net.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            schedule.load_state_dict(saved["schedule"])
            state = State.from_dict(saved["state"])
            begun = f"resumes after epoch {len(state.history)}"
            if state.stopped == "epochs" and len(state.history) < training.epochs:
                state.stopped = ""  # the run had fewer epochs
        if (here := commit()) is not None and here not in state.commits:
            state.commits.append(here)

        quiet = quiet or run is None
        weights, board = "" if module is None else first_weights(module, config), None
        if run is not None:
            run.extend(config)
            run.log(command)
            title = f"{config.model.name} on {config.data.name} in {folder}"
            given = [f"first weights: {weights}"] if weights else []
            for note in (f"{title}: {begun}", *data.notes(), *given):
                run.log(note)
                show(note, quiet)
            if state.history:  # a kill after last.ckpt was written leaves metrics.csv a row short
                run.write_metrics(state.history)
            if logger is not None:
                from lightning_fabric.loggers.tensorboard import TensorBoardLogger

                board = TensorBoardLogger(folder, name="tensorboard", version="")

        with StopSignals() as signals:
            while not state.stopped:
                # Train for an epoch
                epoch, start = len(state.history), time.perf_counter()
                meter, lr = Meter(training, data.classes, fabric), adam.param_groups[0]["lr"]
                bar = tqdm(train, f"epoch {epoch + 1}", leave=False, disable=quiet or None)
                model.train()
                train.set_epoch(epoch)
                for number, batch in enumerate(bar):
                    torch.manual_seed(_step_seed(config.seed, epoch, number, fabric.global_rank))
                    prediction, target = forward_batch(model, fabric.to_device(batch))
                    loss = loss_of(training.loss, prediction, target, fabric, data.std)
                    value = loss.item()
                    if not math.isfinite(value):
                        raise _diverged(f"loss of epoch {epoch + 1}, batch {number + 1}", value, lr)
                    optimizer.zero_grad()
                    fabric.backward(loss)
                    if training.clip is not None:
                        # A gradient that is not finite shows in the next loss; 16-mixed skips it.
                        fabric.clip_gradients(
                            model, optimizer, max_norm=training.clip, error_if_nonfinite=False
                        )
                    optimizer.step()
                    if training.schedule == "cosine":
                        schedule.step()
                    meter.update(prediction, target, loss)
                    if signals.asked:
                        where = f"stopped in epoch {epoch + 1}"
                        raise Stopped(f"{where}; to resume {folder}: {command}")
                train_scores, middle = meter.compute(), time.perf_counter()

                # Validate
                val_scores = evaluate_model(model, val, data, fabric)
                row = {"epoch": epoch + 1, "lr": lr}
                for split, scores in (("train", train_scores), ("val", val_scores)):
                    row[f"{split}_loss"] = scores["loss"]
                    for kind in ("batches", "items"):
                        row[f"{split}_{training.metric}_{kind}"] = scores[kind]
                row["train_seconds"] = middle - start
                row["val_seconds"] = time.perf_counter() - middle
                state.history.append(row)
                if training.schedule == "plateau":
                    schedule.step(val_scores["loss"])
                elif training.schedule != "cosine":
                    schedule.step()
                if training.schedule == "plateau" and adam.param_groups[0]["lr"] < training.min_lr:
                    state.stopped = "rate"
                elif len(state.history) >= training.epochs:
                    state.stopped = "epochs"
                if not math.isfinite(val_scores["loss"]):
                    # It may pass: running statistics lag behind while the rate is high.
                    whole = all(value.isfinite().all() for value in net.state_dict().values())
                    passed = any(math.isfinite(row["val_loss"]) for row in state.history)
                    if state.stopped or not whole or (epoch >= 10 and not passed):
                        what = f"validation loss after epoch {epoch + 1}"
                        raise _diverged(what, val_scores["loss"], lr)

                # Save
                if best := state.is_best(training.metric):
                    state.best_epoch = epoch + 1
                if run is not None:
                    content = {"model": net.state_dict(), "epoch": epoch + 1}
                    if best:
                        # First: after a kill in between, this epoch is trained again.
                        write_checkpoint(folder / "best.ckpt", config, data.task, content)
                    content |= {"optimizer": adam.state_dict(), "schedule": schedule.state_dict()}
                    content |= {"data": mark, "state": state.to_dict()}
                    write_checkpoint(folder / "last.ckpt", config, data.task, content)
                    run.write_metrics(state.history)
                show_epoch(config, row, quiet)
                if board is not None:
                    board.log_metrics(row, step=epoch + 1)

        # Test
        test: dict[str, dict[str, float]] | None = None
        checksums = [mark, fingerprint(val)]
        if "test" in data.splits:
            loader = data.loader("test")
            checksums.append(fingerprint(loader))
            test = {"last": evaluate_model(model, loader, data, fabric)}
            fabric.barrier()  # rank 0 may still be writing best.ckpt
            net.load_state_dict(read_checkpoint(folder / "best.ckpt")["model"])
            test["best"] = evaluate_model(model, loader, data, fabric)
        result = summarise(
            config,
            folder,
            state,
            test,
            command=command,
            parameters=count_parameters(net),
            device=fabric.device.type,
            ranks=fabric.world_size,
            fingerprint=joint_fingerprint(checksums),
            initial_weights=weights,
        )
        if run is not None:
            result.save()
            run.log(str(result))
        fabric.barrier()
        return result


def _step_seed(seed: int, epoch: int, batch: int, rank: int) -> int:
    r"""Returns the seed of the random numbers of a step, which a resumed run draws again."""
    text = f"{seed} {epoch} {batch} {rank}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def make_optimizer(config: Config, parameters: Iterable[Parameter]) -> Adam:
    r"""Returns the optimizer of a run, for the weights of its network."""
    training = config.training
    kind = AdamW if training.optimizer == "adamw" else Adam
    # A fused step divides by the scale of 16-mixed itself, but clipping needs divided gradients.
    fused = training.clip is None or config.precision != "16-mixed"
    return kind(parameters, lr=training.lr, weight_decay=training.weight_decay, fused=fused)


def cosine_factor(training: TrainingConfig, steps: int, step: int) -> float:
    r"""Returns the factor of the learning rate in a step, from 0, for so many steps in an epoch."""
    warm, last = training.warmup * steps, training.epochs * steps
    if step < warm:
        return (step + 1) / warm
    lowest = training.min_lr / training.lr
    done = min(1.0, (step - warm) / (last - warm))
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * done)) / 2


def make_schedule(training: TrainingConfig, optimizer: Adam, steps: int) -> Any:
    r"""Returns torch's scheduler: a cosine is stepped after each batch, the others each epoch."""
    if training.schedule == "plateau":
        return ReduceLROnPlateau(optimizer, factor=training.factor, patience=training.patience)
    if training.schedule == "step":
        return StepLR(optimizer, training.step, training.factor)
    if training.schedule == "cosine":
        return LambdaLR(optimizer, lambda step: cosine_factor(training, steps, step))
    return LambdaLR(optimizer, lambda epoch: 1.0)


def _diverged(what: str, value: float, lr: float) -> TrainingError:
    return TrainingError(
        f"the {what}, at a learning rate of {lr:g}, is {value}: try --lr {lr / 10:g}; "
        "the checkpoint of the last finished epoch is kept"
    )


def show(text: str, quiet: bool = False) -> None:
    r"""Prints a line on standard error, unless it is quiet."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def show_epoch(config: Config, row: dict[str, Any], quiet: bool) -> None:
    r"""Shows the end of an epoch, of which ``row`` is the row of ``metrics.csv``."""
    training, epoch = config.training, row["epoch"]
    seconds = row["train_seconds"] + row["val_seconds"]
    left = "at most " if training.schedule == "plateau" else ""
    left += duration(seconds * (training.epochs - epoch))
    metric, score = training.metric.replace("_", " "), row[f"val_{training.metric}_items"]
    show(
        f"epoch {epoch}/{training.epochs}: loss {row['train_loss']:.4f}, val {metric} {score:.4f}, "
        f"lr {row['lr']:.1e}, {seconds:.1f} s, {left} left",
        quiet,
    )


def duration(seconds: float) -> str:
    r"""Formats a duration as ``1:02:03``."""
    return str(timedelta(seconds=round(seconds)))


class StopSignals:
    r"""Context manager in which the first SIGINT or SIGTERM sets :attr:`asked`; a second has its
    usual effect. It does nothing outside the main thread, which alone can handle signals."""

    def __enter__(self) -> "StopSignals":
        self.asked = False
        main = threading.current_thread() is threading.main_thread()
        caught = (signal.SIGINT, signal.SIGTERM) if main else ()
        self.before = {number: signal.signal(number, self._remember) for number in caught}
        return self

    def __exit__(self, *_: object) -> None:
        while self.before:
            signal.signal(*self.before.popitem())

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()
