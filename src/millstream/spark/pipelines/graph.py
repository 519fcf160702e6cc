"""What a pipeline's definitions come to: flows, and the tables, views and sinks they go into.

Spark's own graph is read, which holds what Python and SQL files alike define; it is a private part of Spark 4.3, of
which only this module and `engine` know.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FILE_FORMATS", "Flow", "Graph", "Sink", "Table", "read_graph"]

FILE_FORMATS: Final = frozenset({"csv", "json", "orc", "parquet", "text", "avro"})
"""Formats of Spark's file sink. It keeps one log of batches in the directory, by the number of the batch alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A query and where it goes.

    Args:
        name, target: as Spark writes them, with catalog and database for tables.
        where: file and line of its definition.
    """

    name: str
    target: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the catalog.

    Args:
        name: with catalog and database.
        is_streaming: a streaming table, as opposed to a materialized view.
        format: in lower case; parquet is what Spark takes where none is given.
        location: its directory if one is given.
        where: file and line of its definition.
    """

    name: str
    is_streaming: bool
    format: str
    location: str | None
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What flows write to outside of the catalog.

    Args:
        name: of the sink.
        format: in lower case.
        options: by their names in lower case, which Spark does not tell apart.
        where: file and line of its definition.
    """

    name: str
    format: str
    options: Mapping[str, str]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """All of a pipeline's definitions; flows into temporary views are left out."""

    flows: tuple[Flow, ...]
    tables: tuple[Table, ...]
    sinks: tuple[Sink, ...]


def read_graph(java_graph: Any, root: str) -> Graph:
    """Read Spark's DataflowGraph.

    Args:
        java_graph: the object, as py4j shows it.
        root: the project's directory, to which files are told relative.
    """
    tables = tuple(
        Table(
            name=table.identifier().unquotedString(),
            is_streaming=table.isStreamingTable(),
            format=(_optional(table.format()) or "parquet").lower(),
            location=dict(_pairs(table.properties())).get("path"),
            where=_where(table, root),
        )
        for table in _each(java_graph.tables())
    )
    sinks = tuple(
        Sink(
            name=sink.identifier().unquotedString(),
            format=sink.format().lower(),
            options={name.lower(): value for name, value in _pairs(sink.options())},
            where=_where(sink, root),
        )
        for sink in _each(java_graph.sinks())
    )
    kept = {table.name for table in tables} | {sink.name for sink in sinks}
    flows = tuple(
        Flow(name=flow.identifier().unquotedString(), target=target, where=_where(flow, root))
        for flow in _each(java_graph.flows())
        if (target := flow.destinationIdentifier().unquotedString()) in kept
    )
    return Graph(flows=flows, tables=tables, sinks=sinks)


def _where(element: Any, root: str) -> str:
    path, line = _optional(element.origin().filePath()), _optional(element.origin().line())
    if path is None:
        return "the definitions"
    return f"{path.removeprefix(root).lstrip('/')}:{line}" if line is not None else path


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _pairs(mapping: Any) -> Iterator[tuple[str, str]]:
    for pair in _each(mapping):
        yield str(pair._1()), str(pair._2())


def _optional(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
