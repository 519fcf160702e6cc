"""What one way writes the other one reads: HTTP and the binary protocol.

Arguments: the URL of the HTTP API, the address of the binary protocol, a name that is nobody else's.
"""

import sys
from typing import Any

from tests.conformance.iggy_apache.releases import package, run

key, value = package.HeaderKey, package.HeaderValue
HEADERS = {key.String("kind"): value.String("text"), key.UnsignedInt16(7): value.Int128(-(2**100))}


async def connected(config: Any) -> Any:
    one = package.IggyClient(config)
    await one.connect()
    await one.login_user("iggy", "iggy")
    return one


async def main() -> None:
    name = sys.argv[3]
    http = await connected(package.HttpConfig(api_url=sys.argv[1], retries=0))
    binary = await connected(sys.argv[2])
    await http.create_stream(name)
    await binary.create_topic(stream=name, name="t1", partitions_count=4)
    assert (await http.get_topic(name, "t1")).id == (await binary.get_topic(name, "t1")).id
    for writer in (http, binary, http):
        await send(writer, name)
    polled = [await poll(reader, name) for reader in (http, binary)]
    assert polled[0] == polled[1]
    assert [one[0] for one in polled[0]] == list(range(6))
    assert all(one[-1] == HEADERS for one in polled[0][1::2])
    await keys(http, binary, name)
    await offsets(http, binary, name)
    await groups(http, binary, name)
    await http.delete_stream(name)
    assert await binary.get_stream(name) is None


async def send(writer: Any, name: str) -> None:
    sent = [package.SendMessage(b"\x00plain"), package.SendMessage("with headers", user_headers=HEADERS)]
    await writer.send_messages(stream=name, topic="t1", partitioning=1, messages=sent)


async def poll(reader: Any, name: str, strategy: Any = None, *, auto_commit: bool = False) -> list[tuple[Any, ...]]:
    polled = await reader.poll_messages(
        stream=name,
        topic="t1",
        partition_id=1,
        polling_strategy=strategy or package.PollingStrategy.First(),
        count=100,
        auto_commit=auto_commit,
        consumer=package.Consumer.Single(f"reader-{name}"),
    )
    return [
        (
            one.offset(),
            one.id(),
            one.payload(),
            one.timestamp(),
            one.origin_timestamp(),
            one.checksum(),
            dict(one.user_headers() or {}),
        )
        for one in polled
    ]


async def keys(http: Any, binary: Any, name: str) -> None:
    """A key leads both to one partition."""
    for number in range(8):
        places = set()
        for writer in (http, binary):
            reply = await writer.send_messages(
                stream=name,
                topic="t1",
                partitioning=package.Partitioning.messages_key(b"key %d" % number),
                messages=[package.SendMessage("keyed")],
            )
            places.add(reply.confirmations[0].partition_id)
        assert len(places) == 1


async def offsets(http: Any, binary: Any, name: str) -> None:
    """A consumer goes on where it was the other way."""
    following = package.PollingStrategy.Next()
    assert (await poll(http, name, following, auto_commit=True))[0][0] == 0
    assert await poll(binary, name, following) == []
    await send(binary, name)
    assert await poll(http, name, following) == await poll(binary, name, following) != []


async def groups(http: Any, binary: Any, name: str) -> None:
    """A member that joined over its connection is seen by everybody."""
    await http.create_consumer_group(name, "t1", "g1")
    await binary.join_consumer_group(name, "t1", "g1")
    (member,) = (await http.get_consumer_group(name, "t1", "g1")).members
    assert member.partitions == [0, 1, 2, 3]


run(main)
