"""Who writes: the query and the micro-batch that a task works for, as Spark tells it."""

import os
from dataclasses import dataclass
from typing import Final

__all__ = ["Attempt", "attempt"]

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
"""Local properties that Spark sets on every job of a streaming query. The id of the query is kept in its checkpoint,
so it lives as long as that does. Source: Spark, StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one task.

    Args:
        query: id of the streaming query; empty for a batch.
        batch: number of the micro-batch, as text; empty for a batch.
        name: tells it apart from other attempts, for people.
    """

    query: str
    batch: str
    name: str


def attempt() -> Attempt:
    """The attempt that this process works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return Attempt("", "", f"{os.getpid()}")
    query, batch = context.getLocalProperty(_QUERY) or "", context.getLocalProperty(_BATCH) or ""
    return Attempt(query, batch, f"{context.partitionId():05d}-{context.taskAttemptId()}")
