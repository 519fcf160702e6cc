"""Client libraries that are used where they are installed and never required."""

import importlib
from types import ModuleType

__all__ = ["installed"]


def installed(name: str) -> ModuleType | None:
    """Return the module of this name, or None if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
