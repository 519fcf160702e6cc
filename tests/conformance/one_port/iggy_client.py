"""Runs in the environment of the Iggy package: sends a message, and polls it.

Arguments: a connection string, the topic, the value.
"""

import asyncio
import os
import sys
from importlib import import_module
from typing import Any

iggy: Any = import_module("apache_iggy")


async def main(url: str, topic: str, value: str) -> None:
    client = iggy.IggyClient.from_connection_string(url)
    await client.connect()
    await client.create_topic(stream="default", name=topic, partitions_count=1)
    message = iggy.SendMessage(value)
    await client.send_messages(stream="default", topic=topic, partitioning=0, messages=[message])
    polled = await client.poll_messages(
        stream="default",
        topic=topic,
        partition_id=0,
        consumer=iggy.Consumer.Single(1),
        polling_strategy=iggy.PollingStrategy.First(),
        count=10,
        auto_commit=False,
    )
    assert [one.payload().decode() for one in polled] == [value]


asyncio.run(main(*sys.argv[1:]))
sys.stdout.flush()
os._exit(0)  # threads of the package abort the process at times when it ends
