from fognn.training import Stopped, TrainingError


def test_who_catches_what() -> None:
    # A notebook that is interrupted must not go on as if an error had been handled.
    assert issubclass(Stopped, KeyboardInterrupt)
    assert not issubclass(Stopped, Exception)
    assert issubclass(TrainingError, RuntimeError)
