"""What the checkpoints of a pipeline's flows say: how far each has come.

A streaming query of Spark writes `offsets/N` before batch N and `commits/N` after it. In `offsets/N`, the lines
behind the second are where each source's batch ends, which for topics is JSON: `{"topic": {"0": 100}}`. Declared
flows have theirs in STORAGE/_checkpoints/TARGET/FLOW/VERSION, with a directory for each part of the target's name; a
full refresh counts VERSION up.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Checkpoint", "Position", "read_checkpoint", "read_checkpoints", "rows_between", "topics_in"]

Position = dict[str, dict[int, int]]
"""The offset behind the last record, by topic and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a flow has come.

    Args:
        flow, target: their names, without catalog and database in `flow`.
        batch: the last finished batch; None if there is none.
        is_open: whether a batch is planned that is not finished: it is going on, or is run again at the next start.
        position: where the last finished batch ends, in topics.
        finished: when that was, in seconds since 1970.
    """

    flow: str
    target: str
    batch: int | None
    is_open: bool
    position: Position
    finished: float | None


def read_checkpoints(storage_dir: str) -> list[Checkpoint]:
    """Read those of all flows that have one, sorted by target and flow."""
    root = os.path.join(storage_dir, "_checkpoints")
    found = []
    for directory, names, _ in os.walk(root):
        versions = [int(name) for name in names if name.isdecimal() and _is_checkpoint(os.path.join(directory, name))]
        if versions:
            names.clear()
            *target, flow = os.path.relpath(directory, root).split(os.sep)
            found.append(read_checkpoint(os.path.join(directory, str(max(versions))), flow, ".".join(target)))
    return sorted(found, key=lambda one: (one.target, one.flow))


def read_checkpoint(directory: str, flow: str, target: str) -> Checkpoint:
    """Read one checkpoint.

    Args:
        directory: of the checkpoint.
        flow, target: names to give it.
    """
    planned, finished = _last(directory, "offsets"), _last(directory, "commits")
    position: Position = {}
    time = None
    if finished is not None:
        position = _position(os.path.join(directory, "offsets", str(finished)))
        time = os.stat(os.path.join(directory, "commits", str(finished))).st_mtime
    return Checkpoint(
        flow=flow,
        target=target,
        batch=finished,
        is_open=planned is not None and planned != finished,
        position=position,
        finished=time,
    )


def topics_in(offsets: Any) -> Position:
    """The offsets of topics in what a source reports; empty if these are no offsets of topics."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except ValueError:
            return {}
    if not isinstance(offsets, Mapping):
        return {}
    position: Position = {}
    for topic, parts in offsets.items():
        if isinstance(parts, Mapping) and all(
            str(part).isdecimal() and isinstance(at, int) for part, at in parts.items()
        ):
            position[str(topic)] = {int(part): at for part, at in parts.items()}
    return position


def rows_between(start: Position, end: Position) -> int:
    """Records from one position to another; a partition that the first does not know counts from 0."""
    return sum(
        max(0, at - start.get(topic, {}).get(part, 0)) for topic, parts in end.items() for part, at in parts.items()
    )


def _is_checkpoint(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, "metadata"))


def _last(directory: str, kind: str) -> int | None:
    try:
        names = os.listdir(os.path.join(directory, kind))
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _position(path: str) -> Position:
    position: Position = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return position
    for line in lines[2:]:
        for topic, parts in topics_in(line).items():
            position.setdefault(topic, {}).update(parts)
    return position
