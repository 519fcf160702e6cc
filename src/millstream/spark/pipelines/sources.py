"""Which topics a pipeline's flows read, and where.

Checkpoints hold offsets of topics, but not whose they are: to tell the lag without Spark, `status` needs the brokers.
They are seen in the plans of flows when these are registered.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from millstream.spark.servers import SERVER_OPTIONS, SERVERS

__all__ = ["SELECTIONS", "SourceNotes", "topic_sources"]

_FORMAT: Final = "millstream"
SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")
"""The options that select topics."""
_STARTS: Final = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "startinggroup")


class SourceNotes:
    """Notes what flows read while they are registered.

    `sources` has one entry for each broker and selection of topics: the options that say where the broker is and how
    to speak to it, `kafka.bootstrap.servers` as `servers`, and the option that selects. Secrets are
    among them. `latest` has the flows that begin at the end of their topics, because no option says where to begin.
    """

    def __init__(self) -> None:
        self.sources: list[dict[str, str]] = []
        self.latest: list[str] = []

    def registry(self, connect: Any, graph_id: str) -> Any:
        """A registry for definitions that hands all of them on to Spark's."""
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry

        return _Registry(SparkConnectGraphElementRegistry(connect, graph_id), self)

    def note(self, flow: str, plan: Any) -> None:
        """Note the topics in the plan of a flow."""
        for options, is_streaming in topic_sources(plan):
            by_name = {name.lower(): value for name, value in options.items()}
            if SERVERS not in by_name:
                continue  # the source itself says so when it is loaded
            source = {"servers": by_name[SERVERS]}
            source.update((name, by_name[name]) for name in SERVER_OPTIONS if name in by_name and name != SERVERS)
            source.update((name, by_name[name.lower()]) for name in SELECTIONS if name.lower() in by_name)
            if source not in self.sources:
                self.sources.append(source)
            if is_streaming and not by_name.keys() & set(_STARTS) and flow not in self.latest:
                self.latest.append(flow)


class _Registry:
    """What definitions are registered with.

    Args:
        spark: Spark's own registry.
        notes: of what flows read.
    """

    def __init__(self, spark: Any, notes: SourceNotes) -> None:
        self._spark = spark
        self._notes = notes

    def register_output(self, output: Any) -> None:
        """Register a table, view or sink."""
        self._spark.register_output(output)

    def register_flow(self, flow: Any) -> None:
        """Register a flow, and note what it reads."""

        def noted() -> Any:
            frame = flow.func()
            self._notes.note(flow.name, frame._plan.plan(frame.sparkSession.client))
            return frame

        self._spark.register_flow(dataclasses.replace(flow, func=noted))

    def register_auto_cdc_flow(self, flow: Any) -> None:
        """Register a flow of changes; it reads another element of the pipeline."""
        self._spark.register_auto_cdc_flow(flow)

    def register_sql(self, text: str, path: Any) -> None:
        """Register what a file of SQL defines; SQL reads topics through views that Python defines."""
        self._spark.register_sql(text, path)


def topic_sources(message: Any) -> Iterator[tuple[dict[str, str], bool]]:
    """The options of each read of a topic in a plan of Spark Connect, and whether it is a stream."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
            continue
        for part in value if descriptor.is_repeated else (value,):
            if descriptor.message_type.name == "Read" and part.data_source.format == _FORMAT:
                yield dict(part.data_source.options), part.is_streaming
            else:
                yield from topic_sources(part)
