"""Creating and deleting topics of a Kafka broker, outside the clock."""

from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench.drivers.driver import Endpoint

__all__ = ["create_topic", "delete_topic"]

_TIMEOUT_SECONDS: Final = 20.0


def _admin(endpoint: Endpoint) -> AdminClient:
    return AdminClient({"bootstrap.servers": f"{endpoint.host}:{endpoint.port}", "log_level": 0})


def create_topic(endpoint: Endpoint, topic: str) -> None:
    """Create a topic with one partition and wait for it."""
    # The client is kept in a variable: it must outlive the answer.
    admin = _admin(endpoint)
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(_TIMEOUT_SECONDS)


def delete_topic(endpoint: Endpoint, topic: str) -> None:
    """Delete a topic and wait for the answer."""
    admin = _admin(endpoint)
    admin.delete_topics([topic])[topic].result(_TIMEOUT_SECONDS)
