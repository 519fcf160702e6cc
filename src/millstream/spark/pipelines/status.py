"""What is known of a pipeline without starting Spark: its runs, and how far each flow has come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millstream.spark.pipelines.checkpoints import Checkpoint, Position, read_checkpoints, rows_between
from millstream.spark.pipelines.latest import latest_offsets
from millstream.spark.pipelines.run_log import Run, read_runs
from millstream.spark.pipelines.spec import Spec

__all__ = ["FlowStatus", "Status", "status_of"]

_RUNS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A flow, as its checkpoint and its broker have it.

    Args:
        checkpoint: how far it has come.
        rows_per_s, duration_s: of its last batch that the run log tells of; None if it tells of none.
        lag: records of its topics that are behind its position; None if that cannot be told.
    """

    checkpoint: Checkpoint
    rows_per_s: float | None
    duration_s: float | None
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A pipeline.

    Args:
        name: of it.
        is_running: whether a process runs it.
        runs: the last ones, the newest first.
        flows: those with a checkpoint.
        problems: why something could not be told, a line each.
    """

    name: str
    is_running: bool
    runs: tuple[Run, ...]
    flows: tuple[FlowStatus, ...]
    problems: tuple[str, ...]


def status_of(spec: Spec, secrets: Mapping[str, str] | None = None) -> Status:
    """Look at a pipeline's run log and checkpoints, and ask its brokers where the topics end.

    Args:
        spec: the pipeline.
        secrets: options for its brokers that are not in the log, such as kafka.sasl.password.
    """
    runs = read_runs(spec.state_dir)
    last = runs[-1] if runs else None
    problems: list[str] = []
    checkpoints: list[Checkpoint] = []
    if spec.storage_dir is not None:
        checkpoints = read_checkpoints(spec.storage_dir)
    else:
        problems.append(f"the checkpoints are at {spec.storage}, which is no directory of this machine")
    latest: Position = {}
    if last is not None:
        topics = {topic for one in checkpoints for topic in one.position}
        latest, unreachable = latest_offsets(last.sources, topics, secrets)
        problems += unreachable
    return Status(
        name=spec.name,
        is_running=last is not None and last.state == "running",
        runs=tuple(reversed(runs[-_RUNS_SHOWN:])),
        flows=tuple(_flow(one, runs, latest) for one in checkpoints),
        problems=tuple(problems),
    )


def _flow(checkpoint: Checkpoint, runs: list[Run], latest: Position) -> FlowStatus:
    told = next(
        (
            flow
            for run in reversed(runs)
            for name, flow in run.flows.items()
            if name.rpartition(".")[2] == checkpoint.flow and "batch" in flow
        ),
        {},
    )
    lag = None
    if checkpoint.position and checkpoint.position.keys() <= latest.keys():
        lag = rows_between(checkpoint.position, {topic: latest[topic] for topic in checkpoint.position})
    return FlowStatus(
        checkpoint=checkpoint, rows_per_s=told.get("rows_per_s"), duration_s=told.get("duration_s"), lag=lag
    )
