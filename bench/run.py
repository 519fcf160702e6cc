"""Measures every line on every system, interleaved so that a noisy minute hits all of them alike."""

import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from bench.bed import Bed, NotApplicable
from bench.drivers.pipeline import DriverError
from bench.lines import Line
from bench.results import Cell, LineResult, SystemResult
from bench.systems import NotFound, System

__all__ = ["find", "measure_line"]

# A case that failed this often on a system is given up there.
_FAILURES_LIMIT: Final = 2


def find(system: System, root: Path) -> SystemResult:
    """Find out whether a system is installed and starts."""
    try:
        version = system.version()
        with Bed(system, root) as bed:
            bed.server()
    except NotFound as error:
        return SystemResult(name=system.name, version="", promise=system.promise, missing=str(error))
    return SystemResult(name=system.name, version=version, promise=system.promise, missing="")


def measure_line(
    line: Line, systems: Sequence[System], root: Path, repetitions: int, say: Callable[[str], None]
) -> LineResult:
    """Measure all cases of a line: for each, A B C, A B C, ...

    Args:
        line: what to measure.
        systems: A, B, C; each that the line is for is started anew.
        root: existing directory for their data.
        repetitions: at least 1.
        say: told what is being measured.
    """
    result = LineResult(name=line.name, title=line.title, metrics=line.metrics)
    with ExitStack() as stack:
        its_systems = [system for system in systems if line.family in system.families]
        beds = [stack.enter_context(Bed(system, root)) for system in its_systems]
        for case in line.cases():
            cells = {bed.system.name: Cell() for bed in beds}
            result.cells[case] = cells
            ready = [bed for bed in beds if _attempt(bed, cells[bed.system.name], partial(line.prepare, bed, case))]
            for repetition in range(repetitions):
                for bed in ready:
                    cell = cells[bed.system.name]
                    if cell.failures >= _FAILURES_LIMIT:
                        continue
                    say(f"{line.name}: {case}: {bed.system.name} {repetition + 1}/{repetitions}")
                    if not _attempt(bed, cell, partial(_measure, line, bed, case, cell)) and cell.failures:
                        # The server that is started next has nothing of what was prepared.
                        _attempt(bed, cell, partial(line.prepare, bed, case))
            for bed in ready:
                if cells[bed.system.name].failures < _FAILURES_LIMIT:
                    _attempt(bed, cells[bed.system.name], partial(line.finish, bed, case))
    return result


def _measure(line: Line, bed: Bed, case: str, cell: Cell) -> None:
    # What the last measurement left behind is not to be collected during this one.
    gc.collect()
    cell.samples.append(line.measure(bed, case))


def _attempt(bed: Bed, cell: Cell, step: Callable[[], None]) -> bool:
    """Take a step on one system; if that fails, note why and start the system anew for the next."""
    expected: tuple[type[Exception], ...] = (DriverError, NotFound, OSError, *bed.system.failures())
    try:
        step()
    except NotApplicable as error:
        cell.note = str(error)
        return False
    except expected as error:
        cell.failures += 1
        cell.note = cell.note or f"{type(error).__name__}: {error}"
        bed.close()
        return False
    return True
