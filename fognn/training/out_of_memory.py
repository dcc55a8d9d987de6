r"""Remedies for a run, an evaluation or a prediction that does not fit into the memory, with the
options of the command."""

from collections.abc import Callable

from fognn.data.opening import is_python_name
from fognn.training.config import Config
from fognn.training.data import few_shot
from fognn.training.user_data import has_sym_norm, is_user_data
from fognn.utils.memory import MemoryLimitError

__all__ = [
    "data_too_large",
    "evaluation_too_large",
    "network_too_large",
    "prediction_too_large",
    "training_too_large",
]

_MORE = "a machine with more memory"


def training_too_large(config: Config, folder: object) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for a run whose training or evaluation does not fit into the memory.

    Args:
        config (Config): The run.
        folder (Path): The run folder.
    """

    def remedy(cause: str) -> MemoryLimitError:
        data, size, ranks = config.data, config.training.batch_size, config.machine.ranks
        half = size // 2 // ranks * ranks
        network = _smaller_network(config)
        smaller = compared = network
        if _whole_graph(config):
            mean = " --set model.norm=mean" * has_sym_norm(config.model)
            smaller = f"sampled neighbourhoods (--set data.neighbors=10,10{mean}) or {network}"
        elif half:
            smaller = f"a smaller batch (--set training.batch_size={half}, it was {size})"
            compared = smaller
        elif few_shot(data):
            shots, ways = data.k_shot, data.n_way
            fewer = f"k_shot={shots // 2}" if shots > 1 else f"n_way={max(2, ways // 2)}"
            smaller = f"fewer images in a task (--set data.{fewer}) or {network}"
        elif data.neighbors is not None:
            fewer = ",".join(str(max(1, k // 2) if k > 0 else 10) for k in data.neighbors)
            smaller = compared = f"fewer neighbours (--set data.neighbors={fewer})"
        # fognn train has options for these; fognn reproduce has only --set.
        option = smaller.replace("--set training.batch_size=", "--batch-size ")
        option = option.replace("--set data.neighbors=", "--neighbors ")
        workers = "or with fewer --workers, if there are several"
        compared = compared.replace(network, "smaller networks (--budget ...)")
        return MemoryLimitError(
            cause,
            f"train with {option}, in another folder than {folder}",
            f"train with {smaller}, {workers}",
            f"compare with {compared}, {workers}",
        )

    return remedy


def _smaller_network(config: Config) -> str:
    if is_python_name(config.model.name):
        return "a smaller network"
    name = "embedding" if few_shot(config.data) else "channels"
    return f"a smaller network (--set model.{name}=...)"


def network_too_large(config: Config) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for a run whose network does not fit into the memory.

    Args:
        config (Config): The run.
    """
    return lambda cause: MemoryLimitError(
        f"{cause}, before the training",
        f"train with {_smaller_network(config)}",
        in_comparison="compare with smaller networks (--budget ...)",
    )


def data_too_large(config: Config) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for a run whose data do not fit into the memory.

    Args:
        config (Config): The run.
    """
    part = f"a part of the data (--set data.fraction={config.data.fraction / 2:g})"
    if is_user_data(config.data):
        part = "a file with fewer or smaller graphs"
    elif few_shot(config.data):
        part = _MORE
    return lambda cause: MemoryLimitError(f"{cause}, before the training", f"train on {part}")


def evaluation_too_large(config: Config, device: str) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for ``fognn evaluate``.

    Args:
        config (Config): The run.
        device (str): The device of the evaluation.
    """

    def remedy(cause: str) -> MemoryLimitError:
        size = 1 if _whole_graph(config) else config.training.batch_size
        return MemoryLimitError(cause, f"evaluate with {_smaller(size, device)}")

    return remedy


def prediction_too_large(batch_size: int, device: str) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for ``fognn predict``.

    Args:
        batch_size (int): Number of graphs, or nodes, in the largest batch.
        device (str): The device.
    """
    return lambda cause: MemoryLimitError(cause, f"predict with {_smaller(batch_size, device)}")


def _smaller(size: int, device: str) -> str:
    if size > 1:
        return f"a smaller batch (--batch-size {size // 2}, it was {size})"
    return _MORE if device == "cpu" else f"--device cpu or {_MORE}"


def _whole_graph(config: Config) -> bool:
    r"""Returns whether the only graph is one batch, whose size is not a setting."""
    return is_user_data(config.data) and config.data.neighbors is None
