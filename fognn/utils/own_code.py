r"""Import of a Python file that the user names, such as one with layers of their own.

Only the user names it, on the command line or as an argument: no configuration, checkpoint or
ledger does. Worker processes find its path in the environment variable ``FOGNN_IMPORT``.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

from fognn.utils.files import user_path

_VARIABLE = "FOGNN_IMPORT"


def import_file(path: str | Path) -> None:
    r"""Imports a Python file, once, here and in all worker processes of this process."""
    file = user_path(path).resolve()
    if file.suffix != ".py" or not file.is_file():
        raise ValueError(f"import must name a Python file (.py) that exists, got {str(path)!r}")
    name = f"fognn_import_{file.stem}"
    known = sys.modules.get(name)
    if known is None or known.__file__ != str(file):
        module = ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module  # before it runs: dataclasses and pickle look it up
        try:
            # Without a loader, which would write bytecode beside the user's file.
            exec(compile(file.read_bytes(), file, "exec"), vars(module))
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"import of {str(path)!r} must not raise, got {problem}") from error
    os.environ[_VARIABLE] = str(file)


def import_asked() -> None:
    r"""Imports the file that the parent process has imported, if there is one."""
    if path := asked():
        import_file(path)


def asked() -> str | None:
    r"""Returns the path of the imported file; :obj:`None` if there is none."""
    return os.environ.get(_VARIABLE) or None
