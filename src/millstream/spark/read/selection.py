"""Which topics and partitions a query reads: the options subscribe, subscribePattern and assign."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from millstream.spark.client import Client, Topic
from millstream.spark.errors import BadOption, TopicMissing

__all__ = ["ASSIGN", "PATTERN", "SUBSCRIBE", "Selection"]

SUBSCRIBE = "subscribe"
PATTERN = "subscribePattern"
ASSIGN = "assign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to read: topics by name, by a pattern, or single partitions.

    Args:
        option: which of the three options says so.
        names: the topics, in order; empty for a pattern.
        pattern: a regular expression that whole names must match; empty if there is none.
        partitions: the partitions of each topic that are read; None for all there are.
    """

    option: str
    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: Mapping[str, tuple[int, ...]] | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Selection":
        """Read the options. Raises BadOption: not exactly one of the three is given, or it makes no sense."""
        options = [name for name in (SUBSCRIBE, PATTERN, ASSIGN) if name in given]
        if len(options) != 1:
            named = f"not both {options[0]} and {options[1]}" if options else "none is given"
            raise BadOption(f"exactly one of {SUBSCRIBE}, {PATTERN} and {ASSIGN} names what to read; {named}")
        option, text = options[0], given[options[0]]
        if not text:
            raise BadOption(f"the option {option} is missing: it is empty")
        if option == PATTERN:
            try:
                re.compile(text)
            except re.error as error:
                raise BadOption(f"{PATTERN} takes a regular expression, not {text!r}: {error}") from None
            return cls(option=option, pattern=text)
        if option == ASSIGN:
            partitions = _assigned(text)
            return cls(option=option, names=tuple(sorted(partitions)), partitions=partitions)
        names = tuple(filter(None, (name.strip() for name in text.split(","))))
        if not names or len(set(names)) < len(names):
            raise BadOption(f"{SUBSCRIBE} takes topics separated by commas, each once, not {text!r}")
        return cls(option=option, names=names)

    def admits(self, topic: str, partition: int | None = None) -> bool:
        """Whether a topic, or a partition of it, is among what is to be read."""
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        if topic not in self.names:
            return False
        return partition is None or self.partitions is None or partition in self.partitions[topic]

    def describe(self, client: Client, *, required: bool = True) -> dict[str, Topic]:
        """Ask what there is.

        Args:
            client: the broker.
            required: whether a pattern must match a topic.

        Returns:
            The topics by name; of each only the partitions that are to be read.

        Raises:
            TopicMissing: a topic or partition that is named does not exist.
        """
        if self.pattern:
            names = [name for name in client.topic_names() if self.admits(name)]
            if not names and required:
                raise TopicMissing(f"no topic matches {self.pattern!r}; change the option {PATTERN}, or create one")
            # One may be deleted between the two questions.
            return client.topics(names, required=False)
        topics = client.topics(list(self.names))
        if self.partitions is None:
            return topics
        for name, parts in self.partitions.items():
            missing = set(parts) - set(topics[name].leaders)
            if missing:
                raise TopicMissing(
                    f"topic {name!r} has the partitions 0 to {len(topics[name].leaders) - 1}, not {min(missing)}; "
                    f"change the option {ASSIGN}"
                )
        return {
            name: Topic(name, topic.topic_id, {part: topic.leaders[part] for part in self.partitions[name]})
            for name, topic in topics.items()
        }


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    """Read JSON such as {"orders": [0, 2]}."""
    try:
        read = json.loads(text)
        partitions = {str(topic): tuple(sorted(int(part) for part in parts)) for topic, parts in read.items()}
    except (ValueError, AttributeError, TypeError):
        partitions = {}
    numbers = [part for parts in partitions.values() for part in parts]
    repeats = any(len(set(parts)) < len(parts) or not parts for parts in partitions.values())
    if not partitions or repeats or min(numbers) < 0:
        raise BadOption(f'{ASSIGN} takes JSON such as {{"topic": [0, 1]}}, each partition once, not {text!r}')
    return partitions
