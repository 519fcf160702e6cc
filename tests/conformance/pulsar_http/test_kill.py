"""What was answered is there after kill -9: tenants, namespaces, policies, topics, schemas, subscriptions."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.server_process import ServerProcess, start

ANY = "any=127.0.0.1:0"
USER = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}


def call(server: ServerProcess, method: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    url = f"http://{server.addresses['any']}/admin/v2/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, content, method=method), timeout=20) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def test_all_that_was_answered_survives(tmp_path: Path) -> None:
    server = start(str(tmp_path / "data"), ANY)
    call(server, "PUT", "tenants/acme", {"adminRoles": ["ada"]})
    call(server, "PUT", "namespaces/acme/sales")
    call(server, "POST", "namespaces/acme/sales/messageTTL", 60)
    call(server, "PUT", "persistent/acme/sales/orders/partitions", 1)
    call(server, "PUT", "persistent/acme/sales/orders/subscription/s")
    call(server, "POST", "persistent/acme/sales/orders-partition-0/terminate")
    for name in ("User", "Person"):
        body = {"type": "AVRO", "schema": json.dumps({**USER, "name": name})}
        call(server, "POST", "schemas/acme/sales/orders/schema", body)
    schema = call(server, "GET", "schemas/acme/sales/orders/schemas")
    server.kill()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server = start(str(tmp_path / "data"), ANY)
    try:
        assert call(server, "GET", "tenants/acme")["adminRoles"] == ["ada"]
        assert call(server, "GET", "namespaces/acme/sales/messageTTL") == 60
        assert call(server, "GET", "persistent/acme/sales/partitioned") == ["persistent://acme/sales/orders"]
        assert call(server, "GET", "persistent/acme/sales/orders/subscriptions") == ["s"]
        assert call(server, "GET", "persistent/acme/sales/orders-partition-0/internalStats")["state"] == "Terminated"
        assert call(server, "GET", "schemas/acme/sales/orders/schemas") == schema
        assert len(schema["getSchemaResponses"]) == 2
    finally:
        assert server.stop() == 0
        assert server.process.stdout is not None
        server.process.stdout.close()
