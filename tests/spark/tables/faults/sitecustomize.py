"""Imported by every Python process of a test's driver: makes faults in our code, which knows nothing of them.

    TABLES_FAULT_DIR     where they leave word of faults: stopped-NAME, killed-NAME

The directory that a table is in says what is to happen to it: under `placed-delta`, the driver's commit of batch 1
stops where files are placed, until the test kills it. One worker of each is killed in a task of batch 0.
"""

import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from types import ModuleType
from typing import Any

_DIRECTORY = os.environ.get("TABLES_FAULT_DIR", "")


def _name(table: Any) -> str:
    return str(os.path.basename(os.path.dirname(table.root)))


def _stop(intent: Any, point: str) -> None:
    """Wait to be killed, if this is the place."""
    name = _name(intent._table)
    if name.startswith(point) and "~1~" in intent._stem:
        open(os.path.join(_DIRECTORY, f"stopped-{name}"), "w").close()
        time.sleep(600)


def _patch_publishing(module: ModuleType) -> None:
    place, fulfil = module.Intent.place, module.Intent.fulfil

    def stopping_place(intent: Any, files: Any) -> Any:
        _stop(intent, "staged")
        placed = place(intent, files)
        _stop(intent, "placed")
        return placed

    def stopping_fulfil(intent: Any) -> None:
        _stop(intent, "published")
        fulfil(intent)

    module.Intent.place, module.Intent.fulfil = stopping_place, stopping_fulfil


def _patch_staging(module: ModuleType) -> None:
    write = module.Staging.write

    def killed_once(staging: Any, batches: Any) -> Any:
        def dying() -> Any:
            yield from batches
            try:
                os.close(os.open(os.path.join(_DIRECTORY, f"killed-{_name(table)}"), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

        table = staging._plan.table
        return write(staging, dying())

    module.Staging.write = killed_once


_PATCHES = {
    "millstream.spark.tables.publishing": _patch_publishing,
    "millstream.spark.tables.staging": _patch_staging,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the ordinary machinery find a module, and patches it when it is loaded."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in _PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def patched(module: ModuleType) -> None:
            execute(module)
            _PATCHES[name](module)

        spec.loader.exec_module = patched  # type: ignore[method-assign]
        return spec


if _DIRECTORY:
    sys.meta_path.insert(0, _Finder())
