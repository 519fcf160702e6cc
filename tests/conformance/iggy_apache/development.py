"""What is understood of the protocol in development: login, streams and users."""

import sys

from tests.conformance.iggy_apache.releases import connected, run


async def main() -> None:
    name = sys.argv[2]
    iggy = await connected()
    await iggy.ping()
    made = await iggy.create_stream(name)
    assert (made.name, made.topics_count) == (name, 0)
    assert (await iggy.get_stream(name)).id == made.id
    assert name in {one.name for one in await iggy.get_streams()}
    await iggy.delete_stream(name)
    assert await iggy.get_stream(name) is None
    assert "iggy" in {one.username for one in await iggy.get_users()}


run(main)
