import pytest
import torch

from fognn.models import FewShotNet

KINDS = ["gnn", "fog", "gnn+fog"]


def tasks(batch: int = 2, shots: int = 1, size: int = 20):
    torch.manual_seed(0)
    label = torch.stack([torch.randperm(5 * shots) % 5 for _ in range(batch)])
    support = torch.randn(batch, 5 * shots, 1, size, size)
    return support, label, torch.randn(batch, 1, size, size)


def net(kind: str, **settings) -> FewShotNet:
    torch.manual_seed(0)
    return FewShotNet(kind, embedding=8, image_size=20, image_channels=1, **settings)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shots", [1, 5])
def test_logits(kind: str, shots: int) -> None:
    network = net(kind)
    out = network(*tasks(shots=shots))
    assert out.shape == (2, 5)
    out.logsumexp(1).sum().backward()
    # The adjacency's last bias shifts all scores alike: a softmax does not see it.
    idle = {n for n, p in network.named_parameters() if p.grad is None}
    assert not idle


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["learnt", "all"])
def test_the_order_of_the_support_set_changes_nothing(kind: str, neighbours: str) -> None:
    network = net(kind, neighbours=neighbours).eval()
    support, label, query = tasks()
    order = torch.randperm(5)
    torch.testing.assert_close(
        network(support[:, order], label[:, order], query), network(support, label, query)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_in_a_batch_do_not_meet(kind: str) -> None:
    network = net(kind).eval()
    support, label, query = tasks()
    apart = [network(support[i : i + 1], label[i : i + 1], query[i : i + 1]) for i in range(2)]
    torch.testing.assert_close(network(support, label, query), torch.cat(apart))


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_a_task(kind: str) -> None:
    network = net(kind)
    support, label, _ = tasks(batch=4)
    query, answer = support[:, 2] + 0.01, label[:, 2]  # the query is nearly a support image
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(80):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(support, label, query), answer)
        loss.backward()
        optimiser.step()
    assert loss < 0.5


def test_bad_input(capsys) -> None:
    network = net("gnn")
    support, label, query = tasks()
    with pytest.raises(ValueError, match=r"label must lie in 0\.\.4, got 5"):
        network(support, label + 1, query)
    with pytest.raises(ValueError, match=r"support must have shape \[batch, images, C, H, W\]"):
        network(support[0], label, query)
    with pytest.raises(ValueError, match=r"label must have shape \[2, 5\]"):
        network(support, label[:, :-1], query)
    with pytest.raises(ValueError, match="FewShotNet: n_way must be a positive int, got 0"):
        FewShotNet("gnn", n_way=0)
    network.summary()
    assert "cnn: ImageEncoder" in capsys.readouterr().out
