"""PING, GET_STATS, GET_CLUSTER_METADATA, GET_ME, GET_CLIENT, GET_CLIENTS."""

from typing import Final

from millstream.broker.permissions import Action
from millstream.sessions.iggy.call import Call, Client, HostFacts
from millstream.sessions.iggy.login import SERVER_VERSION
from millstream.sessions.session import Endpoint
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.system import (
    ClientDetails,
    ClientGroup,
    ClientInfo,
    ClientList,
    ClientRequest,
    ClusterMetadata,
    ClusterNode,
    Empty,
    ServerStats,
)

__all__ = ["cluster_metadata", "get_client", "get_clients", "get_me", "ping", "stats"]

_TCP: Final = 1
_LEADER, _HEALTHY = 0, 0
CLUSTER_NAME: Final = "millstream"


def ping(call: Call, request: Empty) -> Empty:
    """Answer."""
    return request


def stats(call: Call, request: Empty) -> ServerStats:
    """What there is, and what it takes."""
    call.permit(Action.READ_SERVER)
    shared, broker = call.shared, call.broker
    host = shared.host.measure() if shared.host is not None else HostFacts()
    logs = [partition.log for topic in broker.topics for partition in topic.partitions]
    now_us = broker.runtime.now_ms() * 1000
    major, minor, patch = (int(part) for part in SERVER_VERSION.split("."))
    return ServerStats(
        process_id=host.process_id,
        cpu_usage=host.cpu_usage,
        total_cpu_usage=host.total_cpu_usage,
        memory_bytes=host.memory_bytes,
        total_memory_bytes=host.total_memory_bytes,
        available_memory_bytes=host.available_memory_bytes,
        run_time_us=max(now_us - host.start_time_us, 0) if host.start_time_us else 0,
        start_time_us=host.start_time_us,
        read_bytes=host.read_bytes,
        written_bytes=host.written_bytes,
        messages_size_bytes=sum(log.size_bytes for log in logs),
        streams_count=len(shared.streams),
        topics_count=sum(1 for _ in broker.topics),
        partitions_count=len(logs),
        segments_count=sum(log.segment_count for log in logs),
        messages_count=sum(log.end_offset - log.start_offset for log in logs),
        clients_count=len(shared.clients),
        groups_count=sum(1 for _ in shared.groups),
        hostname=host.hostname,
        os_name=host.os_name,
        os_version=host.os_version,
        kernel_version=host.kernel_version,
        server_version=SERVER_VERSION,
        server_semver=major * 1_000_000 + minor * 1000 + patch,
        threads_count=host.threads_count,
        free_disk_bytes=host.free_disk_bytes,
        total_disk_bytes=host.total_disk_bytes,
    )


def cluster_metadata(call: Call, request: Empty) -> ClusterMetadata:
    """This server, which is all of the cluster. Clients go to where the leader is said to be: to this listener."""
    here = call.client.endpoint("")
    if here is None:
        raise Refused(ErrorCode.FEATURE_UNAVAILABLE)
    http = call.client.endpoint("http")
    node = ClusterNode(
        name=f"{CLUSTER_NAME}-1",
        ip=here.host,
        tcp_port=here.port,
        quic_port=0,
        http_port=_port(http),
        websocket_port=0,
        role=_LEADER,
        status=_HEALTHY,
    )
    return ClusterMetadata(name=CLUSTER_NAME, nodes=[node])


def _port(endpoint: Endpoint | None) -> int:
    return 0 if endpoint is None else endpoint.port


def get_me(call: Call, request: Empty) -> ClientDetails:
    """The client that asks."""
    return _details(call, call.client)


def get_client(call: Call, request: ClientRequest) -> ClientDetails:
    """A client by its number."""
    call.permit(Action.READ_SERVER)
    if not request.client_id:
        raise Refused(ErrorCode.INVALID_CLIENT_ID, "client 0")
    client = call.shared.clients.get(request.client_id)
    if client is None:
        raise Refused(ErrorCode.CLIENT_NOT_FOUND, f"there is no client {request.client_id}")
    return _details(call, client)


def get_clients(call: Call, request: Empty) -> ClientList:
    """All clients of this protocol."""
    call.permit(Action.READ_SERVER)
    return ClientList(clients=[_info(client) for client in call.shared.clients.values()])


def _info(client: Client) -> ClientInfo:
    return ClientInfo(
        id=client.id,
        user_id=0 if client.user is None else client.user.id,
        transport=_TCP,
        address=client.address,
        groups_count=len(client.groups),
    )


def _details(call: Call, client: Client) -> ClientDetails:
    streams, groups = call.shared.streams, []
    for group in client.groups:
        topic = call.broker.topics.by_id(group.topic_id)
        if topic is not None:
            stream = streams.stream_of(topic)
            groups.append(ClientGroup(stream=stream.number, topic=streams.number_of(topic), group=group.number))
    info = _info(client)
    info.groups_count = len(groups)
    return ClientDetails(client=info, groups=groups)
