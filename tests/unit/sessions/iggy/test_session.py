"""Connections: which dialect they are taken for, what the server knows of them, and what they must not send."""

import struct

import pytest

from millstream.model.errors import MillstreamError
from millstream.sessions.iggy.call import HostFacts
from millstream.sessions.iggy.table import ENTRIES, Access
from millstream.wire.iggy.commands import COMMANDS
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Undecodable
from millstream.wire.iggy.framing import EvictionReason, LongHeader, long_request, short_request
from millstream.wire.iggy.messages.groups import GroupRequest
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.system import ClientRequest
from millstream.wire.iggy.messages.topics import CreateTopic
from tests.unit.sessions.iggy.conversation import BY_NAME, IggyBroker

DIALECTS = list(Dialect)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


def test_every_command_is_served_and_no_other() -> None:
    assert set(ENTRIES) == {command.code for command in COMMANDS}
    assert {code for code, entry in ENTRIES.items() if entry.access is not Access.USER} == {1, 38, 40, 44}


@every_dialect
def test_clients_know_each_other(server: IggyBroker, dialect: Dialect) -> None:
    one, two = server.connect(dialect), server.connect(Dialect.B3)
    one.make()
    key = one.group()
    one.ask("JOIN_CONSUMER_GROUP", GroupRequest(stream="s1", topic="t1", group=key))
    me = one.ask("GET_ME")
    assert (me.client.address, me.client.transport, me.client.groups_count) == (one.address, 1, 1)
    group = me.groups[0]
    assert (group.stream, group.topic, group.group) == (0, 0, 0)
    assert one.ask("GET_CLIENT", ClientRequest(client_id=me.client.id)) == me
    everyone = one.ask("GET_CLIENTS").clients
    assert {client.address for client in everyone} == {one.address, two.address}
    assert one.refusal("GET_CLIENT", ClientRequest(client_id=0)) == 101
    two.session.close()
    assert len(one.ask("GET_CLIENTS").clients) == 1
    gone = ClientRequest(client_id=next(c.id for c in everyone if c.address == two.address))
    if dialect >= Dialect.B3:
        assert one.ask("GET_CLIENT", gone) is None
    else:
        assert one.refusal("GET_CLIENT", gone) == 100


@every_dialect
def test_requests_behind_a_change_wait_for_it(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    command = BY_NAME["CREATE_STREAM"]
    pending = client.give(client.frame(command, CreateStream(name="s1", stream_id=0)))
    assert pending is not None
    assert client.held == 1
    server.wait(pending)
    assert client.held == 0
    client.ask("CREATE_TOPIC", CreateTopic(stream="s1", name="t1", partitions_count=1, topic_id=0))
    client.put(b"value")
    assert client.held == 0
    assert {code for code, entry in ENTRIES.items() if not entry.in_turn} == {101, 102, 121}


@every_dialect
def test_statistics(server: IggyBroker, dialect: Dialect) -> None:
    class Host:
        def measure(self) -> HostFacts:
            now_us = server.runtime.now_ms() * 1000
            return HostFacts(process_id=42, hostname="host", start_time_us=now_us - 5_000_000, free_disk_bytes=7)

    server.service.shared.host = Host()
    client = server.connect(dialect)
    client.make(partitions=2)
    client.put(b"1", b"2")
    client.group()
    stats = client.ask("GET_STATS")
    assert (stats.process_id, stats.hostname, stats.run_time_us) == (42, "host", 5_000_000)
    counts = stats.streams_count, stats.topics_count, stats.partitions_count, stats.segments_count
    assert counts == (1, 1, 2, 2)
    assert (stats.messages_count, stats.clients_count, stats.groups_count) == (2, 1, 1)
    assert stats.messages_size_bytes == sum(one.log.size_bytes for one in server.topic("s1.t1").partitions)
    assert stats.free_disk_bytes == (7 if dialect >= Dialect.C3 else 0)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one >= Dialect.C2])
def test_the_cluster_is_this_server(server: IggyBroker, dialect: Dialect) -> None:
    (node,) = server.connect(dialect).ask("GET_CLUSTER_METADATA").nodes
    assert (node.ip, node.tcp_port, node.role, node.status) == ("127.0.0.1", 8090, 0, 0)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if not one.long_headers])
def test_unknown_commands_are_answered(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    assert client.raw(short_request(999, b"")) == struct.pack("<II", 3, 0)
    client.ask("PING")


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one.long_headers])
def test_unknown_operations_are_answered(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)

    def status(operation: int, code: int, session: int) -> int:
        header = LongHeader(bytes(16), bytes(16), 1, operation, session, code, dialect is Dialect.D0)
        return int.from_bytes(client.raw(long_request(header, b""))[216:220], "little")

    assert status(2, 999, client.session_number) == 3
    assert status(99, 0, client.session_number) == 3
    assert status(2, 201, client.session_number + 1) == 14001
    assert status(2, 1_000_000, client.session_number) == 0
    client.ask("PING")


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one.long_headers])
def test_old_logins_in_long_headers_send_a_client_away(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect, login=False)
    header = LongHeader(bytes(16), bytes(16), 1, 2, 0, 38, dialect is Dialect.D0)
    assert client.raw(long_request(header, b"")) == b""
    assert b"".join(client.pushed)[255] == EvictionReason.MALFORMED_LOGIN


def test_protocols_from_elsewhere_send_a_client_away(server: IggyBroker) -> None:
    client = server.connect(Dialect.D, login=False)
    header = LongHeader(bytes(16), bytes(16), 1, 1, 0, 0)
    assert client.raw(long_request(header, (99 << 10).to_bytes(4, "little"))) == b""
    assert b"".join(client.pushed)[255] == EvictionReason.INCOMPATIBLE_PROTOCOL


@pytest.mark.parametrize("frame", ["01000000", "03000000", "ffffffff", "00000000" + "ff" * 60])
def test_impossible_frames_cost_the_connection(server: IggyBroker, frame: str) -> None:
    client = server.connect(Dialect.A)
    with pytest.raises(Undecodable):
        client.session.measure(memoryview(bytes.fromhex(frame)))


@pytest.mark.parametrize("payload", ["", "09", "0104", "0304000000", "0200", "02ff61", "0103000000"])
def test_impossible_identifiers_are_answered(server: IggyBroker, payload: str) -> None:
    client = server.connect(Dialect.A)
    assert client.raw(short_request(200, bytes.fromhex(payload))) == struct.pack("<II", 3, 0)
    client.ask("PING")


def test_anonymous_clients_can_be_kept_out(server: IggyBroker) -> None:
    server.service.shared.anonymous = False
    client = server.connect(Dialect.A)
    assert client.refusal("GET_STREAMS") == 40
    client.ask("PING")


def test_nothing_changes_when_the_store_fails(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    server.store.failing = True
    assert client.refusal("CREATE_STREAM", CreateStream(name="s1")) == 1
    server.store.failing = False
    assert isinstance(MillstreamError("x"), Exception)


@every_dialect
def test_a_dialect_is_recognised_whatever_comes_first(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect, login=False)
    for _ in range(2):
        client.ask("PING")
    if dialect.has_login:
        client.log_in("iggy", "iggy")
    client.make()
    client.put(b"x")
    assert client.values() == [b"x"]
    client.session.finish()
    client.session.resume()
