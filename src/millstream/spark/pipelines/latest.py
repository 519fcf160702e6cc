"""Where the topics that a pipeline reads end now, asked of their brokers."""

import json
import re
from collections.abc import Collection, Mapping, Sequence

from millstream.spark.client import LATEST, Client
from millstream.spark.errors import SparkSourceError
from millstream.spark.pipelines.checkpoints import Position
from millstream.spark.servers import SERVERS, Servers

__all__ = ["are_all_named", "latest_offsets"]


def latest_offsets(
    sources: Sequence[Mapping[str, str]], topics: Collection[str], secrets: Mapping[str, str] | None = None
) -> tuple[Position, list[str]]:
    """Look up the ends of topics.

    Args:
        sources: servers, and what selects topics at them, as `sources.SourceNotes` has noted.
        topics: their names.
        secrets: options that the sources were noted without, for all of them.

    Returns:
        The offsets behind the last records, and what went wrong, a line each. A topic is left out if its broker does
        not answer, if it is gone, or if topics of its name are read from several clusters.
    """
    places: dict[str, set[str]] = {
        topic: {source["servers"] for source in sources if _selects(source, topic)} for topic in topics
    }
    options = {source["servers"]: source for source in sources}
    position: Position = {}
    problems = []
    for servers in sorted(set().union(*places.values())):
        names = sorted(topic for topic, at in places.items() if at == {servers})
        if not names:
            continue
        try:
            with Client(Servers.of({SERVERS: servers, **options[servers], **(secrets or {})})) as client:
                found = client.offsets(client.topics(names, required=False), LATEST)
                position.update({topic: dict(parts) for topic, parts in found.items()})
        except SparkSourceError as error:
            problems.append(str(error))
    return position, problems


def are_all_named(sources: Sequence[Mapping[str, str]]) -> bool:
    """Whether all topics are selected by their names, so that no new ones appear."""
    return all("subscribe" in source or "assign" in source for source in sources)


def _selects(source: Mapping[str, str], topic: str) -> bool:
    if "subscribe" in source:
        return topic in [name.strip() for name in source["subscribe"].split(",")]
    if "assign" in source:
        return topic in json.loads(source["assign"])
    return re.fullmatch(source.get("subscribePattern", ""), topic) is not None
