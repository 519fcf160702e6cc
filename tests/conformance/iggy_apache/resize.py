"""Change the number of partitions of a topic."""

import sys

from tests.conformance.iggy_apache.releases import connected, run


async def main() -> None:
    stream, action, count = sys.argv[2:]
    iggy = await connected()
    if action == "make":
        await iggy.create_stream(stream)
        await iggy.create_topic(stream=stream, name="t1", partitions_count=int(count))
    elif action == "delete":
        await iggy.delete_partitions(stream, "t1", int(count))
    else:
        await iggy.create_partitions(stream, "t1", int(count))


run(main)
