"""The server and its clients: ping, stats, cluster metadata, clients, options, snapshot."""

from datetime import UTC, datetime
from typing import Any, Final

from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel

from millstream.server.http.iggy_call import CallArgument, iggy_router, served, served_or_missing
from millstream.server.http.iggy_forms import size_text
from millstream.sessions.iggy import system, topics
from millstream.sessions.iggy.snapshot import Compression, Kind
from millstream.sessions.iggy.snapshot import snapshot as take_snapshot
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind
from millstream.wire.iggy.messages.system import (
    ClientInfo,
    ClientRequest,
    DescribeOptions,
    Empty,
    SnapshotRequest,
)

__all__ = ["router"]

router = iggy_router()


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


_TRANSPORTS: Final = {1: "TCP"}
_SCOPES: Final = {"topic": 1, "stream": 2, "user": 3}
_COMPRESSIONS: Final = {_camel(one.name): one.value for one in Compression}
_SNAPSHOTS: Final = {_camel(one.name): one.value for one in Kind}


@router.get("/ping", response_class=PlainTextResponse)
async def ping() -> str:
    """Answers "pong" to anybody."""
    return "pong"


@router.get("/stats")
async def stats(call: CallArgument) -> dict[str, Any]:
    """What there is, and what it takes."""
    told = await served(call, system.stats, Empty())
    return {
        "process_id": told.process_id,
        "cpu_usage": told.cpu_usage,
        "total_cpu_usage": told.total_cpu_usage,
        "memory_usage": size_text(told.memory_bytes),
        "total_memory": size_text(told.total_memory_bytes),
        "available_memory": size_text(told.available_memory_bytes),
        "run_time": told.run_time_us,
        "start_time": told.start_time_us,
        "read_bytes": size_text(told.read_bytes),
        "written_bytes": size_text(told.written_bytes),
        "messages_size_bytes": size_text(told.messages_size_bytes),
        "streams_count": told.streams_count,
        "topics_count": told.topics_count,
        "partitions_count": told.partitions_count,
        "segments_count": told.segments_count,
        "messages_count": told.messages_count,
        "clients_count": told.clients_count,
        "consumer_groups_count": told.groups_count,
        "hostname": told.hostname,
        "os_name": told.os_name,
        "os_version": told.os_version,
        "kernel_version": told.kernel_version,
        "iggy_server_version": told.server_version,
        "iggy_server_semver": told.server_semver,
        "cache_metrics": {},
        "threads_count": told.threads_count,
        "free_disk_space": size_text(told.free_disk_bytes),
        "total_disk_space": size_text(told.total_disk_bytes),
    }


@router.get("/cluster/metadata")
async def cluster_metadata(call: CallArgument) -> dict[str, Any]:
    """This server, which is all of the cluster."""
    told = await served(call, system.cluster_metadata, Empty())
    nodes = [
        {
            "name": node.name,
            "ip": node.ip,
            "endpoints": {
                "tcp": node.tcp_port,
                "quic": node.quic_port,
                "http": node.http_port,
                "websocket": node.websocket_port,
            },
            "role": "leader",
            "status": "healthy",
        }
        for node in told.nodes
    ]
    return {"name": told.name, "nodes": nodes}


def _client(client: ClientInfo) -> dict[str, Any]:
    return {
        "client_id": client.id,
        "user_id": client.user_id or None,
        "address": client.address,
        "transport": _TRANSPORTS[client.transport],
        "consumer_groups_count": client.groups_count,
    }


@router.get("/clients")
async def clients(call: CallArgument) -> list[dict[str, Any]]:
    """The connections of the binary protocol."""
    told = await served(call, system.get_clients, Empty())
    return [_client(client) for client in told.clients]


@router.get("/clients/{client_id}")
async def client(call: CallArgument, client_id: int) -> dict[str, Any]:
    """One of them."""
    told = await served_or_missing(call, system.get_client, ClientRequest(client_id=client_id))
    groups = [{"stream_id": one.stream, "topic_id": one.topic, "group_id": one.group} for one in told.groups]
    return {**_client(told.client), "consumer_groups": groups}


@router.get("/options/{scope}")
async def options(call: CallArgument, scope: str) -> list[dict[str, Any]]:
    """The options of a noun: topic, stream or user."""
    if scope not in _SCOPES:
        raise Refused(ErrorCode.INVALID_COMMAND, f"nothing has options that is called {scope!r}")
    told = await served(call, topics.describe_options, DescribeOptions(scope=_SCOPES[scope]))
    return [
        {
            "key": one.key,
            "kind": HeaderKind(one.kind).name.lower(),
            "default_value": list(one.default),
            "description": one.description,
        }
        for one in told.options
    ]


class Snapshot(BaseModel):
    """What is to be in a snapshot."""

    compression: str = "Deflated"
    snapshot_types: list[str] = ["All"]


@router.post("/snapshot", response_class=Response)
async def snapshot(call: CallArgument, body: Snapshot) -> Response:
    """An archive of what the server knows of itself."""
    if body.compression not in _COMPRESSIONS or not _SNAPSHOTS.keys() >= set(body.snapshot_types):
        raise Refused(ErrorCode.INVALID_COMMAND, "there is no such compression or snapshot")
    request = SnapshotRequest(
        compression=_COMPRESSIONS[body.compression], types=[_SNAPSHOTS[one] for one in body.snapshot_types]
    )
    archive = await served(call, take_snapshot, request)
    made_at = datetime.fromtimestamp(call.broker.runtime.now_ms() / 1000, UTC)
    disposition = f'attachment; filename="iggy_snapshot_{made_at:%Y%m%d_%H%M%S}.zip"'
    return Response(
        bytes(archive.content), media_type="application/zip", headers={"content-disposition": disposition}
    )
