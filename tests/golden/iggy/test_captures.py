"""Frames as real clients sent them, each with what it means; and the answers that they accepted."""

import pytest

from millstream.wire.iggy.commands import BY_CODE
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.framing import measure
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.incoming import Stamp, take
from millstream.wire.iggy.kinds import Consumer, Partitioning
from millstream.wire.iggy.layout import decode, encode
from millstream.wire.iggy.messages.batches import Placed, PollMessages, SendReply, Strategy
from millstream.wire.iggy.messages.groups import GroupAssignment, GroupDetails, GroupInfo, GroupMember, GroupRequest
from millstream.wire.iggy.messages.offsets import StoreOffset
from millstream.wire.iggy.messages.register import Register, RegisterReply, read_register
from millstream.wire.iggy.messages.topics import CreateTopic, PartitionInfo, TopicInfo, TopicReply
from millstream.wire.iggy.messages.users import LoginReply, LoginUser
from millstream.wire.iggy.polled import native_slice
from millstream.wire.iggy.recognition import Recogniser, fits
from millstream.wire.iggy.stored import read_frame, seal

NEVER = 2**64 - 1
FRAME_BYTES_MAX = 1000
REPLICATED = [
    UserHeader(b"consumer_offset_durability", b"replicated", HeaderKind.STRING),
    UserHeader(b"durability", b"replicated", HeaderKind.STRING),
]


def unhexed(text: str) -> memoryview:
    return memoryview(bytearray(bytes.fromhex(text)))


REQUESTS = [
    pytest.param(
        Dialect.A,
        "1b000000 2e010000 01 04 01000000 01000000 03000000 00000000 02 7431 0000",
        CreateTopic(stream=0, topic_id=0, partitions_count=3, name="t1"),
        id="A-CREATE_TOPIC (Go client 81258ad, which ends it with two spare bytes)",
    ),
    pytest.param(
        Dialect.A,
        "27000000 64000000 01 01000000 01 04 01000000 01 04 01000000 01000000 05 0000000000000000 0a000000 01",
        PollMessages(
            consumer=Consumer(False, 1),
            stream=0,
            topic=0,
            partition=0,
            strategy=Strategy.NEXT,
            value=0,
            count=10,
            auto_commit=True,
        ),
        id="A-POLL_MESSAGES (Go client)",
    ),
    pytest.param(
        Dialect.A,
        "14000000 58020000 01 04 01000000 01 04 01000000 07000000",
        GroupRequest(stream=0, topic=0, group=6),
        id="A-GET_CONSUMER_GROUP (Go client)",
    ),
    pytest.param(
        Dialect.B3,
        "1c000000 26000000 04 69676779 04 69676779 06000000 302e362e3132 00000000",
        LoginUser(name="iggy", password="iggy", version="0.6.12"),
        id="B3-LOGIN_USER (iggy-py 0.2.4)",
    ),
    pytest.param(
        Dialect.B3,
        "27000000 2e010000 01 04 01000000 01000000 01000000 01 ffffffffffffffff 0000000000000000 00 02 7431",
        CreateTopic(stream=0, topic_id=0, partitions_count=1, expiry_us=NEVER, replication=0, name="t1"),
        id="B3-CREATE_TOPIC (iggy-py 0.2.4)",
    ),
    pytest.param(
        Dialect.C2,
        "21000000 2e010000 02 02 7331 01000000 01 ffffffffffffffff 0000000000000000 00 02 7431",
        CreateTopic(stream="s1", partitions_count=1, expiry_us=NEVER, replication=0, name="t1"),
        id="C2-CREATE_TOPIC (apache-iggy 0.6.0)",
    ),
    pytest.param(
        Dialect.C1,
        "25000000 64000000 01 01 04 01000000 02 02 7331 02 02 7431 01000000 05 0000000000000000 0a000000 01",
        PollMessages(
            consumer=Consumer(False, 1),
            stream="s1",
            topic="t1",
            partition=0,
            strategy=Strategy.NEXT,
            value=0,
            count=10,
            auto_commit=True,
        ),
        id="C1-POLL_MESSAGES (apache-iggy 0.5.0)",
    ),
    pytest.param(
        Dialect.C3,
        "26000000 64000000 01 01 04 00000000 02 02 7331 02 02 7431 01 01000000 05 0000000000000000 0a000000 01",
        PollMessages(
            consumer=Consumer(False, 0),
            stream="s1",
            topic="t1",
            partition=1,
            strategy=Strategy.NEXT,
            value=0,
            count=10,
            auto_commit=True,
        ),
        id="C3-POLL_MESSAGES (apache-iggy 0.8.0)",
    ),
]


@pytest.mark.parametrize(("dialect", "text", "message"), REQUESTS)
def test_requests(dialect: Dialect, text: str, message: object) -> None:
    frame = unhexed(text)
    assert measure(frame, FRAME_BYTES_MAX) == len(frame)
    command = BY_CODE[int.from_bytes(frame[4:8], "little")]
    assert command.decode_request(dialect, frame[8:]) == message
    spare = 2 if dialect is Dialect.A and command.name == "CREATE_TOPIC" else 0
    assert bytes(encode(message, dialect)) == bytes(frame[8 : len(frame) - spare])
    assert fits(command, dialect, frame[8:]) == (not spare)


A_SEND = """5f000000 65000000 01 04 01000000 02 02 7431 02 04 01000000
    105fc7d07e9c4d96899d88086ddfeaa2 0d000000 02000000 6b31 02 02000000 7631 05000000 68656c6c6f
    5ca6e25624ce4231b4b30445e4ed2dea 00000000 09000000 776f726c6477696465"""
C3_SEND = """c8000000 65000000 12000000 02 02 7331 02 02 7431 02 04 01000000 02000000
    00000000 45000000 0000000000000000   00000000 8e000000 0000000000000000
    0000000000000000 00000000000000000000000000000000 0000000000000000 0000000000000000 24bec32abf600600 00000000
    05000000 0000000000000000 68656c6c6f
    0000000000000000 00000000000000000000000000000000 0000000000000000 0000000000000000 25bec32abf600600 00000000
    09000000 0000000000000000 776f726c6477696465"""
D_SEND = f"""12000000 02 02 7331 02 02 7431 02 04 01000000 02000000
    0000000000000000 0000000000000000 0000000000000000 893cc32abf600600 6e01000000000000 374f47755004c805 02000000
    {"00" * 204}
    4175ae8970d7a9d0 2c349f1580e04bc2b4461674c25cb2a3 00000000 00000000 00000000 05000000 0000000000000000 68656c6c6f
    f57939f483d17c4f e9e80795596a481caf2726215d360ade 01000000 01000000 00000000 09000000 0000000000000000
    776f726c6477696465"""


@pytest.mark.parametrize(
    ("dialect", "text", "skipped"),
    [(Dialect.A, A_SEND, 8), (Dialect.C3, C3_SEND, 8), (Dialect.D, D_SEND, 0)],
)
def test_sends(dialect: Dialect, text: str, skipped: int) -> None:
    payload = unhexed(text)[skipped:]
    request = BY_CODE[101].decode_request(dialect, payload)
    assert request.partitioning == Partitioning(1 - dialect.first_id)
    assert fits(BY_CODE[101], dialect, payload) or dialect.long_headers
    incoming = take(request, dialect, Stamp(0, 0, 1_000_000), lambda count: b"\1" * count)
    frame, header = seal(payload, incoming, 1000)
    assert [record.value for record in read_frame(frame)] == [b"hello", b"worldwide"]
    assert native_slice(frame, header, dialect, 0, 2) is not None


def test_the_answer_to_a_poll_of_dialect_a() -> None:
    payload = unhexed(A_SEND)[8:]
    request = BY_CODE[101].decode_request(Dialect.A, payload)
    sent_us = 0x00060A24181E4000
    incoming = take(request, Dialect.A, Stamp(0, 0, sent_us), bytes)
    frame, header = seal(payload, incoming, sent_us // 1000)
    polled = native_slice(frame, header, Dialect.A, 0, 10)
    assert polled is not None
    # In the capture the checksums are 0; here they are those of "hello" and "worldwide".
    expected = unhexed("""
        0000000000000000 01 00401e18240a0600 105fc7d07e9c4d96899d88086ddfeaa2 86a61036 0d000000
        02000000 6b31 02 02000000 7631 05000000 68656c6c6f
        0100000000000000 01 00401e18240a0600 5ca6e25624ce4231b4b30445e4ed2dea f584d49e 00000000
        09000000 776f726c6477696465""")
    assert b"".join(polled.buffers) == expected


def test_a_login_of_dialect_d() -> None:
    text = "002c0000 08 727573742d73646b 06 302e31312e30 04 69676779 04 69676779 00000000"
    dialect, login = read_register(unhexed(text))
    assert dialect is Dialect.D
    assert login == Register(
        protocol_version=11 << 10, sdk_name="rust-sdk", sdk_version="0.11.0", name="iggy", password="iggy"
    )
    reply = RegisterReply(user_id=1, session=7, protocol_version=11 << 10, server_version="0.11.0")
    assert encode(reply, dialect) == unhexed("01000000 0700000000000000 002c0000 06 302e31312e30")


def test_a_login_of_dialect_d12() -> None:
    text = """00300000 08 727573742d73646b 0d 302e31312e312d656467652e35
        747cb53d0577c29a856a90cd970ba8ae340af45dfe035a39785ef2b083221d60 04 69676779 04 69676779 00000000"""
    dialect, login = read_register(unhexed(text))
    assert dialect is Dialect.D12
    assert isinstance(login, Register)
    assert (login.name, login.password, login.sdk_version) == ("iggy", "iggy", "0.11.1-edge.5")


def test_a_topic_of_dialect_d() -> None:
    body = unhexed("""02 02 7331 01000000 02 7431
        02 1a000000 636f6e73756d65725f6f66667365745f6475726162696c697479 02 0a000000 7265706c696361746564
        02 0a000000 6475726162696c697479 02 0a000000 7265706c696361746564""")
    message = CreateTopic(stream="s1", partitions_count=1, name="t1", options=REPLICATED)
    assert BY_CODE[302].decode_request(Dialect.D, body) == message
    topic = TopicInfo(
        id=1,
        created_at_us=0x00060A24181E4000,
        partitions_count=1,
        expiry_us=NEVER,
        compression=1,
        max_size_bytes=NEVER,
        size_bytes=0,
        messages_count=0,
        name="t1",
    )
    partition = PartitionInfo(
        id=1,
        created_at_us=0x00060A24181E4000,
        segments_count=1,
        current_offset=0,
        size_bytes=0,
        messages_count=0,
    )
    expected = unhexed("""01000000 00401e18240a0600 01000000 ffffffffffffffff 01 ffffffffffffffff 0000000000000000
        0000000000000000 02 7431 00000000 00000000
        01000000 00401e18240a0600 01000000 0000000000000000 0000000000000000 0000000000000000""")
    assert encode(TopicReply(topic=topic, partitions=[partition]), Dialect.D) == expected


def test_groups_and_offsets_of_dialect_d() -> None:
    sync = GroupRequest(stream="s1", topic="t1", group="g1")
    assert decode(GroupRequest, Dialect.D, unhexed("02 02 7331 02 02 7431 02 02 6731"), whole=True) == sync
    assignment = GroupAssignment(generation=1, partitions=[1])
    assert encode(assignment, Dialect.D) == unhexed("0100000000000000 01000000 01000000")
    store = unhexed("02 02 02 6731 02 02 7331 02 02 7431 01 01000000 0100000000000000 01")
    assert decode(StoreOffset, Dialect.D, store, whole=True) == StoreOffset(
        consumer=Consumer(True, "g1"), stream="s1", topic="t1", partition=1, offset=1, ack=1
    )
    reply = SendReply(placed=[Placed(stream=1, topic=1, partition=1, base_offset=0)])
    assert encode(reply, Dialect.D) == unhexed("01000000 01000000 01000000 01000000 0000000000000000")


def test_answers_of_early_dialects() -> None:
    group = GroupDetails(
        group=GroupInfo(id=6, partitions_count=3, members_count=1),
        members=[GroupMember(id=12345, partitions=[0, 1, 2])],
    )
    expected = "07000000 03000000 01000000 39300000 03000000 01000000 02000000 03000000"
    assert encode(group, Dialect.A) == unhexed(expected)
    assert encode(LoginReply(user_id=1), Dialect.B3) == unhexed("01000000")


def test_the_login_settles_the_dialect() -> None:
    frame = unhexed("1c000000 26000000 04 69676779 04 69676779 06000000 302e362e3132 00000000")
    assert Recogniser().see(38, frame[8:]) is Dialect.B3
