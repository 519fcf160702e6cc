"""The Python sources of compiled modules, as Python runs them."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import millstream

__all__ = ["twin"]

ROOT = Path(millstream.__file__).parent


def twin(name: str) -> ModuleType:
    """A module as Python runs it, even where the compiled one comes first.

    Args:
        name: of the module, in `millstream`, such as "wire.kafka.record_rows".
    """
    path = ROOT / (name.replace(".", "/") + ".py")
    loader = importlib.machinery.SourceFileLoader(f"{name.replace('.', '_')}_twin", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert module.__file__ == str(path)
    return module
