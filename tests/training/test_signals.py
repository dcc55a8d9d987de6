import os
import signal
import threading
from collections.abc import Iterator

import pytest

from fognn.training.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_remembered(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert not signals.asked
        os.kill(os.getpid(), number)
        assert signals.asked
    assert signal.getsignal(number) is before


@pytest.fixture
def usual_handler() -> Iterator[None]:
    """A process in the background of a shell ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
def test_the_second_signal_is_the_usual_one() -> None:
    with StopSignals() as signals, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.asked
        os.kill(os.getpid(), signal.SIGINT)


def test_another_thread_gets_no_signals() -> None:
    seen = []

    def work() -> None:
        with StopSignals() as signals:
            seen.append(signals.asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
