"""Streams, topics, partitions and groups over the Iggy HTTP API; and that a stream is a namespace."""

import io
import zipfile
from collections.abc import Callable

import millstream
from tests.unit.server.http.admin import Admin
from tests.unit.server.http.iggy_visitor import Visitor, outgoing

UNBOUNDED = 2**64 - 1


def test_a_stream_is_a_namespace(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    iggy, pulsar = Visitor(http_broker), Admin(http_broker)
    made_here, made_there = unique("here"), unique("there")
    iggy("POST", "/streams", {"name": made_here})
    pulsar.done("PUT", f"/admin/v2/namespaces/public/{made_there}")
    names = {one["name"] for one in iggy("GET", "/streams")}
    assert {made_here, made_there} <= names
    assert {f"public/{made_here}", f"public/{made_there}"} <= set(pulsar("GET", "/admin/v2/namespaces/public"))
    refusal = iggy.refused(400, "stream_name_already_exists", "POST", "/streams", {"name": made_there})
    assert (refusal["id"], refusal["field"]) == (1012, "name")
    pulsar.refused(409, "PUT", f"/admin/v2/namespaces/public/{made_here}")
    pulsar.done("PUT", f"/admin/v2/persistent/public/{made_here}/t1")
    assert iggy("GET", f"/streams/{made_here}/topics/t1")["partitions_count"] == 1
    iggy.done("DELETE", f"/streams/{made_here}")
    pulsar.done("DELETE", f"/admin/v2/namespaces/public/{made_there}")
    assert iggy("GET", f"/streams/{made_there}")["id"] == 404
    pulsar.refused(404, "GET", f"/admin/v2/namespaces/public/{made_here}")


def test_a_stream_of_another_tenant_has_its_name(
    http_broker: millstream.Broker, unique: Callable[[str], str]
) -> None:
    iggy, pulsar = Visitor(http_broker), Admin(http_broker)
    tenant, other = unique("acme"), unique("ajax")
    pulsar.done("PUT", f"/admin/v2/tenants/{tenant}", {"allowedClusters": ["standalone"]})
    pulsar.done("PUT", f"/admin/v2/namespaces/{tenant}/sales")
    assert iggy("GET", f"/streams/{tenant}.sales")["name"] == f"{tenant}.sales"
    iggy("POST", "/streams", {"name": f"{other}.sales"})
    assert pulsar("GET", f"/admin/v2/namespaces/{other}") == [f"{other}/sales"]


def test_topics(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    iggy, stream = Visitor(http_broker), unique("stream")
    iggy("POST", "/streams", {"name": stream})
    body = {
        "name": "t1",
        "partitions_count": 2,
        "compression_algorithm": "gzip",
        "message_expiry": 60_000_000,
        "max_topic_size": 0,
        "options": {"segment_size": "1000000"},
    }
    made = iggy("POST", f"/streams/{stream}/topics", body)
    assert (made["name"], made["message_expiry"], made["compression_algorithm"]) == ("t1", 60_000_000, "gzip")
    assert made["options"]["segment_size"] == {"value": "1000000", "explicit": True}
    assert not made["options"]["durability"]["explicit"]
    assert [one["id"] for one in made["partitions"]] == [0, 1]
    refusal = iggy.refused(400, "topic_name_already_exists", "POST", f"/streams/{stream}/topics", body)
    assert refusal["field"] == "name"
    iggy.done("PUT", f"~{stream}", {"name": "t1", "message_expiry": UNBOUNDED})
    iggy("POST", f"~{stream}/partitions", {"partitions_count": 1})
    assert iggy.status == 200
    (told,) = iggy("GET", f"/streams/{stream}")["topics"]
    assert (told["message_expiry"], told["partitions_count"]) == (UNBOUNDED, 3)
    iggy("POST", f"~{stream}/messages", outgoing(b"x", b"y"))
    assert iggy("GET", f"~{stream}")["messages_count"] == 2
    iggy.done("DELETE", f"~{stream}/partitions/0?segments_count=1")
    iggy.done("DELETE", f"~{stream}/purge")
    assert iggy("GET", f"~{stream}")["messages_count"] == 0
    iggy.done("DELETE", f"~{stream}/partitions?partitions_count=1")
    assert iggy("GET", f"~{stream}")["partitions_count"] == 2
    iggy.done("DELETE", f"/streams/{stream}/purge")
    iggy.done("DELETE", f"~{stream}")
    assert iggy("GET", f"/streams/{stream}/topics") == []
    assert iggy("GET", f"~{stream}")["code"] == "not_found"
    iggy.refused(404, "topic_name_not_found", "DELETE", f"~{stream}")
    iggy.refused(404, "stream_id_not_found", "DELETE", "/streams/999999")


def test_groups(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    iggy, stream = Visitor(http_broker), unique("stream")
    iggy.make(stream, partitions=2)
    made = iggy("POST", f"~{stream}/consumer-groups", {"name": "g1"})
    assert made == {"id": 0, "name": "g1", "partitions_count": 2, "members_count": 0, "members": []}
    assert iggy("GET", f"~{stream}/consumer-groups/0") == made
    assert [one["name"] for one in iggy("GET", f"~{stream}/consumer-groups")] == ["g1"]
    iggy.refused(400, "consumer_group_name_already_exists", "POST", f"~{stream}/consumer-groups", {"name": "g1"})
    iggy.done("DELETE", f"~{stream}/consumer-groups/g1")
    assert iggy("GET", f"~{stream}/consumer-groups/g1")["id"] == 404


def test_the_server_describes_itself(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    iggy = Visitor(http_broker)
    iggy.make(unique("stream"))
    stats = iggy("GET", "/stats")
    assert stats["streams_count"] == len(iggy("GET", "/streams"))
    assert stats["process_id"] > 0
    assert stats["total_disk_space"].endswith("B")
    assert iggy("GET", "/clients") == []
    assert f"\nstreams {float(stats['streams_count'])}\n" in iggy("GET", "/metrics")
    assert iggy("GET", "/clients/7")["code"] == "not_found"
    metadata = iggy("GET", "/cluster/metadata")
    host, _, port = http_broker.http.rpartition(":")
    assert [(node["ip"], node["endpoints"]["http"]) for node in metadata["nodes"]] == [(host, int(port))]
    described = {one["key"]: bytes(one["default_value"]) for one in iggy("GET", "/options/topic")}
    assert described["durability"] == b"persisted"
    assert iggy("GET", "/options/stream") == []
    iggy.refused(400, "invalid_command", "GET", "/options/cluster")
    archive = iggy("POST", "/snapshot", {"compression": "Stored", "snapshot_types": ["Test"]})
    assert zipfile.ZipFile(io.BytesIO(archive)).read("test.txt") == b"test\n"
    assert "iggy_snapshot_" in iggy.headers["content-disposition"]
    iggy.refused(400, "invalid_command", "POST", "/snapshot", {"snapshot_types": ["Secrets"]})
