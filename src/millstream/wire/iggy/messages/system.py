"""The server, its clients and its statistics."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import (
    BYTES32,
    F32,
    ID,
    NAME,
    TEXT32,
    U8,
    U16,
    U32,
    U64,
    Counted,
    Struct,
    ToEnd,
)
from millstream.wire.iggy.layout import field, message

__all__ = [
    "CacheMetrics",
    "ClientDetails",
    "ClientGroup",
    "ClientInfo",
    "ClientList",
    "ClientRequest",
    "ClusterMetadata",
    "ClusterNode",
    "DescribeOptions",
    "Empty",
    "OptionInfo",
    "OptionList",
    "ServerStats",
    "SnapshotRequest",
]


@message
class Empty:
    """A request or an answer without a payload."""


@message
class ClientRequest:
    """GET_CLIENT."""

    client_id: int = field(U32)


@message
class ClientInfo:
    """A client in an answer. Transport: 1 TCP."""

    id: int = field(U32)
    user_id: int = field(U32, since=Dialect.B1, default=0)
    transport: int = field(U8)
    address: str = field(TEXT32)
    groups_count: int = field(U32)


@message
class ClientGroup:
    """A group of a client. So every client reads it; the server of dialect A's time wrote the numbers in the opposite
    order, and its clients showed them so."""

    stream: int = field(ID)
    topic: int = field(ID)
    group: int = field(ID)


@message
class ClientDetails:
    """The answer to GET_ME and GET_CLIENT."""

    client: ClientInfo = field(Struct(ClientInfo))
    groups: list[ClientGroup] = field(ToEnd(Struct(ClientGroup)), default=list)


@message
class ClientList:
    """The answer to GET_CLIENTS."""

    clients: list[ClientInfo] = field(ToEnd(Struct(ClientInfo)), default=list)


@message
class CacheMetrics:
    """Hits and misses of a partition's cache."""

    stream: int = field(ID)
    topic: int = field(ID)
    partition: int = field(ID)
    hits: int = field(U64)
    misses: int = field(U64)
    ratio: float = field(F32)


@message
class ServerStats:
    """The answer to GET_STATS. CPU in percent, memory in bytes, times in microseconds.

    Clients of dialects B to C2 read up to the field they know; what follows does not disturb them.
    """

    process_id: int = field(U32)
    cpu_usage: float = field(F32)
    total_cpu_usage: float = field(F32, since=Dialect.B1, default=0.0)
    memory_bytes: int = field(U64)
    total_memory_bytes: int = field(U64)
    available_memory_bytes: int = field(U64)
    run_time_us: int = field(U64)
    start_time_us: int = field(U64)
    read_bytes: int = field(U64)
    written_bytes: int = field(U64)
    messages_size_bytes: int = field(U64)
    streams_count: int = field(U32)
    topics_count: int = field(U32)
    partitions_count: int = field(U32)
    segments_count: int = field(U32)
    messages_count: int = field(U64)
    clients_count: int = field(U32)
    groups_count: int = field(U32)
    hostname: str = field(TEXT32)
    os_name: str = field(TEXT32)
    os_version: str = field(TEXT32)
    kernel_version: str = field(TEXT32)
    server_version: str = field(TEXT32, since=Dialect.B3, default="")
    server_semver: int = field(U32, since=Dialect.B3, default=0)
    cache_metrics: list[CacheMetrics] = field(Counted(Struct(CacheMetrics)), since=Dialect.B3, default=list)
    threads_count: int = field(U32, since=Dialect.C3, default=0)
    free_disk_bytes: int = field(U64, since=Dialect.C3, default=0)
    total_disk_bytes: int = field(U64, since=Dialect.C3, default=0)


@message
class SnapshotRequest:
    """GET_SNAPSHOT: compression (1 stored, 2 deflated, ...) and what is to be in it."""

    compression: int = field(U8)
    types: list[int] = field(Counted(U8, U8), default=list)


@message
class ClusterNode:
    """A server of the cluster. Role: 0 leader; status: 0 healthy."""

    name: str = field(TEXT32)
    ip: str = field(TEXT32)
    tcp_port: int = field(U16)
    quic_port: int = field(U16)
    http_port: int = field(U16)
    websocket_port: int = field(U16)
    role: int = field(U8)
    status: int = field(U8)


@message
class ClusterMetadata:
    """The answer to GET_CLUSTER_METADATA."""

    name: str = field(TEXT32)
    nodes: list[ClusterNode] = field(Counted(Struct(ClusterNode)))


@message
class DescribeOptions:
    """DESCRIBE_OPTIONS: of which noun."""

    scope: int = field(U8)


@message
class OptionInfo:
    """An option: its key, the kind of its value, its default in that kind's bytes, and what it is for."""

    key: str = field(NAME)
    kind: int = field(U8)
    default: bytes = field(BYTES32)
    description: str = field(TEXT32)


@message
class OptionList:
    """The answer to DESCRIBE_OPTIONS."""

    options: list[OptionInfo] = field(Counted(Struct(OptionInfo)), default=list)
