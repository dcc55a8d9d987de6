"""What a command printed and returned: see the fixture ``run`` in conftest.py."""

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]
