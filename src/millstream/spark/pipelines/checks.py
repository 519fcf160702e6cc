"""What would lose or double rows, found in a pipeline's definitions before anything runs.

Spark's file sink remembers in the directory which batches it has published, by their numbers alone: a second flow
into the directory, or the same flow begun anew, counts from 0 again, and its batches are taken for done.
Millstream's own sinks remember (application id, batch), and the application id is that of the checkpoint, so that
flows never meet; unless the option `applicationId` gives several flows, or a flow that is begun anew, the same one.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Final

from millstream.spark.errors import PipelineError, UnsafePipeline
from millstream.spark.pipelines.graph import FILE_FORMATS, Flow, Graph, Sink

__all__ = ["check_definitions", "check_full_refresh"]

_OWN_SINKS: Final = ("millstream", "millstream-table")
_TAKEN_FOR_DONE: Final = "would lose rows, because Spark takes its new batches for those it has written before"
_SAFE: Final = "end each in a sink of format millstream-table, which keeps them apart"


def check_definitions(graph: Graph) -> list[PipelineError]:
    """Find definitions that could lose rows; the list is empty if there are none."""
    if not graph.flows:
        return [PipelineError("there are no flows", "define one with @dp.table, @dp.append_flow or in SQL")]
    found: list[PipelineError] = []
    found.extend(_several_into_one_directory(graph))
    found.extend(_same_application(graph))
    return found


def check_full_refresh(graph: Graph, tables: Sequence[str], *, everything: bool) -> list[PipelineError]:
    """Find what must not be begun anew; the list is empty if all of it may.

    Args:
        graph: the definitions.
        tables: names of tables and sinks that are to be refreshed, with or without catalog and database.
        everything: whether all are.
    """
    found: list[PipelineError] = []
    names = {table.name for table in graph.tables} | {sink.name for sink in graph.sinks}
    chosen = set(names) if everything else set()
    for asked in tables:
        meant = {name for name in names if name == asked or name.endswith("." + asked)}
        if not meant:
            known = ", ".join(sorted(names)) or "none"
            found.append(PipelineError(f"there is no table or sink {asked!r} to refresh", f"there are: {known}"))
        chosen |= meant
    found.extend(
        UnsafePipeline(
            f"{table.where}: a full refresh of the {table.format} table {table.name} {_TAKEN_FOR_DONE}",
            "let the flow end in a sink of format millstream-table, or define the table under another name",
        )
        for table in graph.tables
        if table.name in chosen and table.is_streaming and table.format in FILE_FORMATS
    )
    for sink in graph.sinks:
        if sink.name in chosen:
            found.extend(_refresh_of(sink))
    return found


def _refresh_of(sink: Sink) -> Iterator[UnsafePipeline]:
    head = f"{sink.where}: a full refresh of the sink {sink.name}"
    path = sink.options.get("path", "")
    application = sink.options.get("applicationid")
    if sink.format in FILE_FORMATS:
        yield UnsafePipeline(f"{head} {_TAKEN_FOR_DONE}", "write to another path")
    elif sink.format in _OWN_SINKS and application is not None:
        yield UnsafePipeline(
            f"{head} would write nothing: under the applicationId {application!r} its batches are done",
            "remove the option applicationId, or give it a new value, and write to another place",
        )
    elif sink.format == "millstream-table" and _is_filled(path):
        yield UnsafePipeline(
            f"{head} would append all rows to {path} a second time",
            "remove that table first, or write to another path",
        )
    elif sink.format not in ("millstream-table", "console", "noop"):
        topic = sink.options.get("topic")
        yield UnsafePipeline(
            f"{head} would write all rows to {f'the topic {topic}' if topic else 'its target'} a second time",
            "give the sink another name and another target instead",
        )


def _is_filled(path: str) -> bool:
    """Whether there may be a table: only a directory of this machine is known to be missing or empty."""
    local = path.removeprefix("file://")
    if "://" in local:
        return True
    return os.path.isdir(local) and bool(os.listdir(local))


def _several_into_one_directory(graph: Graph) -> Iterator[UnsafePipeline]:
    into: dict[tuple[str, str], list[Flow]] = {}
    flows = _by_target(graph.flows)
    for table in graph.tables:
        if table.is_streaming and table.format in FILE_FORMATS:
            place = _directory(table.location) if table.location else f"table {table.name}"
            into.setdefault((table.format, place), []).extend(flows.get(table.name, ()))
    for sink in graph.sinks:
        if sink.format in FILE_FORMATS:
            place = _directory(sink.options.get("path", ""))
            into.setdefault((sink.format, place), []).extend(flows.get(sink.name, ()))
    for (kind, place), several in sorted(into.items()):
        if len(several) > 1:
            names = " and ".join(sorted(flow.name for flow in several))
            yield UnsafePipeline(
                f"{several[0].where}: the flows {names} write {kind} files to one {place}, where Spark would lose "
                "rows, because it takes the batches of one for those of the other",
                _SAFE,
            )


def _same_application(graph: Graph) -> Iterator[UnsafePipeline]:
    writers: dict[tuple[str, str, str], list[tuple[Sink, Flow]]] = {}
    flows = _by_target(graph.flows)
    for sink in graph.sinks:
        application = sink.options.get("applicationid")
        if sink.format in _OWN_SINKS and application is not None:
            # A topic's ledger is kept with the broker by the application alone, a table's beside the table.
            place = sink.options.get("path", "") if sink.format == "millstream-table" else ""
            for flow in flows.get(sink.name, ()):
                writers.setdefault((sink.format, _directory(place), application), []).append((sink, flow))
    for (_, _, application), several in sorted(writers.items()):
        for (sink, one), (_, other) in itertools.pairwise(several):
            yield UnsafePipeline(
                f"{sink.where}: the flows {one.name} and {other.name} write under one applicationId {application!r}, "
                "so that batches of one would be taken for those of the other and be lost",
                "remove the option applicationId: each flow then has one of its own",
            )


def _by_target(flows: Sequence[Flow]) -> dict[str, list[Flow]]:
    by_target: dict[str, list[Flow]] = {}
    for flow in flows:
        by_target.setdefault(flow.target, []).append(flow)
    return by_target


def _directory(path: str) -> str:
    return f"directory {os.path.normpath(path.removeprefix('file://'))}" if path else "directory"
