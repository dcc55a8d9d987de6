r"""Import of a Python file that the user names, such as one with layers of their own.

Only the user names it, on the command line or as an argument: no configuration, checkpoint or
ledger does. Worker processes find its path in the environment variable ``FOGNN_IMPORT``.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from fognn.utils.files import user_path

__all__ = ["asked", "import_asked", "import_file"]

_VARIABLE = "FOGNN_IMPORT"


def import_file(path: str | Path) -> None:
    r"""Imports a Python file, once, here and in all worker processes of this process.

    Args:
        path (str): The file.

    Raises:
        ValueError: If it is not a Python file, or if it raises.
    """
    file = user_path(path).resolve()
    if file.suffix != ".py" or not file.is_file():
        raise ValueError(f"import must name a Python file (.py) that exists, got {str(path)!r}")
    name = f"fognn_import_{file.stem}"
    known = sys.modules.get(name)
    if known is None or known.__file__ != str(file):
        spec = spec_from_file_location(name, file)
        assert spec is not None  # as for any Python file
        assert spec.loader is not None
        module = module_from_spec(spec)
        written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # beside the user's file
        sys.modules[name] = module  # before it runs: dataclasses and pickle look it up
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise ValueError(
                f"import of {str(path)!r} must not raise, got {type(error).__name__}: {error}"
            ) from error
        finally:
            sys.dont_write_bytecode = written
    os.environ[_VARIABLE] = str(file)


def import_asked() -> None:
    r"""Imports the file that the parent process has imported, if there is one."""
    path = asked()
    if path is not None:
        import_file(path)


def asked() -> str | None:
    r"""Returns the path of the imported file; :obj:`None` if there is none."""
    return os.environ.get(_VARIABLE) or None
