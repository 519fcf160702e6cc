"""Lookup, the cluster and its broker, and the paths of old clients."""

from collections.abc import Callable

import pytest

import millstream
from millstream.server.http.paths import new_form
from tests.unit.server.http.admin import Admin

Unique = Callable[[str], str]


def test_a_topic_is_served_here(admin: Admin) -> None:
    answer = admin("GET", "/lookup/v2/topic/persistent/public/default/t")
    pulsar, http = admin.broker.addresses["pulsar"], admin.broker.http
    assert answer["brokerUrl"] == answer["nativeUrl"] == f"pulsar://{pulsar}"
    assert (answer["httpUrl"], answer["brokerUrlTls"]) == (f"http://{http}", "")
    assert admin("GET", "/lookup/v2/topic/non-persistent/public/default/t-partition-1?listenerName=pulsar") == answer
    assert admin("GET", "/lookup/v2/topic/persistent/public/default/t/bundle") == "0x00000000_0xffffffff"
    admin.refused(404, "GET", "/lookup/v2/topic/persistent/acme/default/t")
    admin.refused(404, "GET", "/lookup/v2/topic/persistent/public/default/t?listenerName=elsewhere")


def test_a_server_without_a_pulsar_listener_serves_pulsar_where_it_listens() -> None:
    with millstream.running(listen=("http=127.0.0.1:0",)) as broker:
        admin = Admin(broker)
        answer = admin("GET", "/lookup/v2/topic/persistent/public/default/t")
        assert answer["brokerUrl"] == f"pulsar://{broker.http}"
        assert admin("GET", "/admin/v2/clusters/standalone")["brokerServiceUrl"] == f"pulsar://{broker.http}"


def test_a_server_that_takes_no_pulsar_says_so() -> None:
    with millstream.running(listen=("http=127.0.0.1:0",), settings={"listener.pinned": "http"}) as broker:
        admin = Admin(broker)
        admin.refused(404, "GET", "/lookup/v2/topic/persistent/public/default/t")
        assert admin("GET", "/admin/v2/clusters/standalone")["brokerServiceUrl"] == ""


def test_there_is_one_cluster_and_one_broker(admin: Admin) -> None:
    assert admin("GET", "/admin/v2/clusters") == ["standalone"]
    assert admin("GET", "/admin/v2/clusters/standalone") == {
        "serviceUrl": f"http://{admin.broker.http}",
        "serviceUrlTls": "",
        "brokerServiceUrl": f"pulsar://{admin.broker.addresses['pulsar']}",
        "brokerServiceUrlTls": "",
    }
    assert admin("GET", "/admin/v2/brokers/standalone") == [admin.broker.http]
    assert admin("GET", "/admin/v2/brokers") == [admin.broker.http]
    for path in ("health", "ready"):
        assert admin("GET", f"/admin/v2/brokers/{path}") == b"ok"
    assert admin("GET", "/admin/v2/brokers/version") == admin("GET", "/version")["version"].encode()
    admin.refused(409, "PUT", "/admin/v2/clusters/standalone", {})
    admin.refused(412, "PUT", "/admin/v2/clusters/other", {})
    admin.refused(404, "GET", "/admin/v2/clusters/other")
    admin.refused(404, "GET", "/admin/v2/brokers/other")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/admin/persistent/p/c/n/t/partitions", "/admin/v2/persistent/p/n/t/partitions"),
        ("/admin/non-persistent/p/c/n/t", "/admin/v2/non-persistent/p/n/t"),
        ("/admin/persistent/p/c/n", "/admin/v2/persistent/p/n"),
        ("/admin/schemas/p/c/n/t/schema/3", "/admin/v2/schemas/p/n/t/schema/3"),
        ("/admin/namespaces/p/c/n/destinations", "/admin/v2/namespaces/p/n/topics"),
        ("/admin/namespaces/p/c/n", "/admin/v2/namespaces/p/n"),
        ("/lookup/v2/destination/persistent/p/c/n/t", "/lookup/v2/topic/persistent/p/n/t"),
        ("/admin/v2/persistent/p/n/t", "/admin/v2/persistent/p/n/t"),
        ("/lookup/v2/topic/persistent/p/n/t", "/lookup/v2/topic/persistent/p/n/t"),
        ("/admin/v2/namespaces/p/n/topics", "/admin/v2/namespaces/p/n/topics"),
        ("/admin/persistent", "/admin/persistent"),
    ],
)
def test_old_paths_leave_the_cluster_out(old: str, new: str) -> None:
    assert new_form(old) == new


def test_old_names_name_the_same_topics(admin: Admin, unique: Unique) -> None:
    name = unique("old")
    admin.done("PUT", f"/admin/persistent/public/standalone/default/{name}/partitions", 2)
    assert admin("GET", f"~/{name}/partitions")["partitions"] == 2
    assert f"persistent://public/default/{name}-partition-0" in admin(
        "GET", "/admin/namespaces/public/standalone/default/destinations?mode=ALL"
    )
    answer = admin("GET", f"/lookup/v2/destination/persistent/public/standalone/default/{name}")
    assert answer["brokerUrl"].startswith("pulsar://")


def test_percent_signs_that_mean_nothing_do_no_harm(admin: Admin) -> None:
    for path in ("~/%", "~/%zz/stats", "~/%ff%fe/stats", "~/%00/stats", "/admin/v2/tenants/%"):
        admin("GET", path)
        assert 400 <= admin.status < 500, path
    admin.refused(412, "PUT", "~/a%00b")


def test_bodies_that_are_no_text_are_refused(admin: Admin) -> None:
    for raw in (b'{"adminRoles": ["\\ud800"]}', b"\xff", b'"', b"{" * 100_000, b"[1,]"):
        admin("PUT", "/admin/v2/tenants/odd", raw=raw)
        assert admin.status == 400, raw
    assert "odd" not in admin("GET", "/admin/v2/tenants")
