"""One release sends, another one polls.

Arguments: the address, "send" or "poll", the stream, the number of the first partition, the writers expected, each of
whom wrote three messages.
"""

import sys

from tests.conformance.iggy_apache.releases import SendMessage, Strategy, connected, run, single


async def main() -> None:
    action, stream, first = sys.argv[2], sys.argv[3], int(sys.argv[4])
    writers = sys.argv[5].split(",")
    iggy = await connected()
    if action == "send":
        if await iggy.get_stream(stream) is None:
            await iggy.create_stream(stream)
            await iggy.create_topic(stream=stream, name="t1", partitions_count=1)
        messages = [SendMessage(f"{writers[-1]} {number}") for number in range(3)]
        await iggy.send_messages(stream=stream, topic="t1", partitioning=first, messages=messages)
        return
    polled = await iggy.poll_messages(
        stream=stream,
        topic="t1",
        partition_id=first,
        polling_strategy=Strategy.First(),
        count=1000,
        auto_commit=False,
        **single(1),
    )
    expected = [f"{writer} {number}" for writer in writers for number in range(3)]
    assert [one.payload().decode() for one in polled] == expected
    assert [one.offset() for one in polled] == list(range(len(expected)))
    print(*(f"{one.id():032x}" for one in polled))


run(main)
