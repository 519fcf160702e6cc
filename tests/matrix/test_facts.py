"""What arrives of a message, by writer and reader, is what the documentation says: no more, no less."""

import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.matrix.conftest import Clients
from tests.matrix.facts import FACTS, own_headers
from tests.matrix.message import Message
from tests.matrix.spark import SparkReader

TABLE: Final = tomllib.loads((Path(__file__).parents[2] / "docs" / "matrix.toml").read_text())
WRITERS: Final = tuple(FACTS)
READERS: Final = (*WRITERS, "spark")

Found = dict[str, dict[str, list[Message]]]
"""What was found: by reader, then by writer."""


@pytest.fixture(scope="module")
def found(clients: Clients, spark_reader: SparkReader) -> Found:
    """A topic for each writer, with a message for each fact, as every reader sees it."""
    topics = {f"facts-{writer}": len(facts) for writer, facts in FACTS.items()}
    clients.kafka.create(*topics)
    messages = {writer: [fact.message for fact in facts] for writer, facts in FACTS.items()}
    clients.kafka.write("facts-kafka", messages["kafka"])
    clients.kafka07.write("facts-kafka07", messages["kafka07"])
    clients.pulsar.write("facts-pulsar", messages["pulsar"], batch=100)
    clients.iggy.write("facts-iggy", messages["iggy"])
    read = {
        "kafka": clients.kafka.read(topics),
        "kafka07": clients.kafka07.read(topics, 1),
        "pulsar": clients.pulsar.read(topics, 1),
        "iggy": clients.iggy.read(topics, 1),
        "spark": spark_reader.read(topics),
    }
    return {reader: {writer: by_topic[f"facts-{writer}"] for writer in WRITERS} for reader, by_topic in read.items()}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_arrives_is_what_the_documentation_says(found: Found, writer: str, reader: str) -> None:
    facts, rows = FACTS[writer], TABLE[writer]
    assert list(rows) == [fact.name for fact in facts]
    judged = {
        fact.name: fact.judge(sent, one)
        for fact, sent, one in zip(facts, found[writer][writer], found[reader][writer], strict=True)
    }
    assert judged == {name: row[reader] for name, row in rows.items()}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_made_up(found: Found, writer: str, reader: str) -> None:
    for fact, one in zip(FACTS[writer], found[reader][writer], strict=True):
        assert own_headers(fact.message, one) == set(), fact.name
        if fact.message.key is None and not fact.message.headers:
            assert one.key is None, fact.name


def test_each_protocol_gives_its_own_clients_what_they_sent(found: Found) -> None:
    for writer, facts in FACTS.items():
        for fact, one in zip(facts, found[writer][writer], strict=True):
            sent = fact.message
            assert one.value == sent.value, fact.name
            assert dict(one.headers) == dict(sent.headers), fact.name
            if sent.time_us is not None:
                assert one.time_us == sent.time_us, fact.name
