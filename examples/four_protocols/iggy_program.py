"""Says something in the topic `room`, and prints what all four have said. Iggy, with its Rust client."""

import asyncio
import os
import sys

from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage


async def main() -> None:
    client = IggyClient(sys.argv[1])
    await client.connect()
    await client.login_user("iggy", "iggy")
    hello = [SendMessage("Iggy: hello from Rust")]
    await client.send_messages(stream="default", topic="room", partitioning=0, messages=hello)
    heard = 0
    while heard < 4:
        polled = await client.poll_messages(
            stream="default",
            topic="room",
            partition_id=0,
            consumer=Consumer.Single(1),
            polling_strategy=PollingStrategy.Offset(heard),
            count=4,
            auto_commit=False,
        )
        heard += len(polled)
        for message in polled:
            print(message.payload().decode())


asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # threads of the client abort the process at times when it ends
