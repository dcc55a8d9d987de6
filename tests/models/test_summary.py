from torch.nn import BatchNorm1d, Linear, Sequential

from fognn.models import count_parameters, create_model, summary


def test_count_parameters() -> None:
    module = Sequential(Linear(3, 4), BatchNorm1d(4))
    assert count_parameters(module) == 3 * 4 + 4 + 2 * 4
    module[0].weight.requires_grad_(False)
    assert count_parameters(module) == 4 + 2 * 4


def test_the_rows_add_up() -> None:
    network = create_model("gatedgcn-e+fog", "zinc", channels=16)
    lines = summary(network).splitlines()
    top = [line for line in lines[2:-2] if not line.startswith(" ")]
    numbers = [int(line.split()[-1].replace(",", "")) for line in top]
    assert len(numbers) == 1 + 1 + 4 + 1  # two encoders, the blocks, the head
    assert sum(numbers) == int(lines[-1].split()[-1].replace(",", "")) == count_parameters(network)
    assert len({len(line) for line in lines}) == 1
