"""Scenarios of the Rust client, each in a process of its own: JSON says what to do, and JSON tells what was seen."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import mq_bridge  # type: ignore[import-not-found]  # installed in the environment that this runs in
import mq_bridge_pulsar  # type: ignore[import-not-found]

WAIT_S = 20.0
QUIET_MS = 500


def endpoint(url: str, topic: str, subscription: str = "s") -> dict[str, Any]:
    """Where to write to, or to read from the beginning."""
    config = {"url": url, "topic": topic, "subscription": subscription, "initial_position": "earliest"}
    return {"custom": {"name": "pulsar", "config": config}}


def produce(url: str, topic: str, values: list[str], properties: dict[str, str]) -> int:
    """Send one by one, and the rest at once."""
    publisher = mq_bridge.Publisher.from_config(endpoint(url, topic))
    half = len(values) // 2
    for value in values[:half]:
        publisher.send(mq_bridge.Message(value.encode(), properties))
    publisher.send_batch([mq_bridge.Message(value.encode(), properties) for value in values[half:]])
    return len(values)


def consume(url: str, topic: str, count: int, acknowledge: int, subscription: str = "s") -> list[list[Any]]:
    """Receive so many messages, acknowledge the first of them, and go."""
    found: list[list[Any]] = []
    with mq_bridge.Consumer.from_config(endpoint(url, topic, subscription)) as consumer:
        deadline_s = time.monotonic() + WAIT_S
        while len(found) < count and time.monotonic() < deadline_s:
            messages, token = consumer.poll_batch(1, QUIET_MS)
            found += [[message.payload.decode(), message.metadata] for message in messages]
            if token is not None and len(found) <= acknowledge:
                consumer.ack(token)
        time.sleep(QUIET_MS / 1000)  # acknowledgements are on their way
    return found


def negative(url: str, topic: str) -> list[list[str]]:
    """Receive a message, send it back, and receive it again."""
    found: list[list[str]] = []
    with mq_bridge.Consumer.from_config(endpoint(url, topic)) as consumer:
        for refuse in (True, False):
            messages, token = consumer.poll_batch(1, round(WAIT_S * 1000))
            found.append([message.payload.decode() for message in messages])
            (consumer.nack if refuse else consumer.ack)(token)
        time.sleep(QUIET_MS / 1000)
    return found


SCENARIOS: dict[str, Callable[..., Any]] = {"produce": produce, "consume": consume, "negative": negative}


def main() -> None:
    """Run the scenario that is named."""
    mq_bridge_pulsar.register()
    json.dump(SCENARIOS[sys.argv[1]](**json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
