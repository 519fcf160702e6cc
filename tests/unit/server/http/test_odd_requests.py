"""Every route with odd names and odd bodies: whatever it answers, it is the caller's fault and not the server's."""

import itertools
import re
from collections import Counter
from typing import Any

from tests.unit.server.http.admin import Admin

NAMES = ["odd", "odd-partition-1", "-partition-", "%F0%9F%8C%8A", "..", "a%00", "x" * 300, str(2**70), "-1", "1e9"]
BODIES: list[Any] = [
    None,
    True,
    -1,
    2**63,
    1.5,
    "",
    "FULL",
    [],
    ["a", 1],
    {},
    {"entryId": "x"},
    {"ledgerId": 2**64, "entryId": -(2**63), "batchIndex": 2**62, "isExcluded": 1},
    {"type": "AVRO", "schema": "{}", "properties": {"a": None}},
    {"type": "KEY_VALUE", "schema": '{"key": 1, "value": []}'},
    {"retentionTimeInMinutes": 2**80, "retentionSizeInMB": 1},
    {"retention_policies": {"retentionTimeInMinutes": -5}, "backlog_quota_map": {"message_age": {}}},
    {"adminRoles": [[]], "allowedClusters": {}},
    {"partitions": {}},
]


SPACE = "oddities"
THERE = {"tenant": "public", "namespace": SPACE, "topic": "odd", "domain": "persistent", "subscription": "odd"}
"""Names of what is there, for all parts of a path but the last."""


def urls(path: str, odd: str) -> list[str]:
    """A route's path for what is there, and with its last part odd."""
    last = re.findall(r"\{(\w+)\}", path)[-1]
    given = ({**THERE, last: THERE.get(last, odd)}, {**THERE, last: odd})
    return [path.replace("{", "{0[").replace("}", "]}").format(values) for values in given]


def test_no_request_is_the_servers_fault(admin: Admin) -> None:
    admin("PUT", f"/admin/v2/namespaces/public/{SPACE}")
    admin("PUT", f"/admin/v2/persistent/public/{SPACE}/odd/partitions", 2)
    admin("PUT", f"/admin/v2/persistent/public/{SPACE}/odd/subscription/odd")
    names = itertools.cycle(NAMES)
    statuses: Counter[int] = Counter()
    for path, operations in admin("GET", "/openapi.json")["paths"].items():
        for method, operation in operations.items():
            if "{" not in path or method == "delete" or "iggy" in operation["tags"]:
                continue
            for body, name in zip(BODIES if "requestBody" in operation else BODIES[:2], names, strict=False):
                for url in urls(path, name):
                    answer = admin(method.upper(), url, body)
                    statuses[admin.status] += 1
                    assert admin.status < 500 or admin.status == 501, (method, url, body, answer)
                    assert admin.status < 400 or set(answer) == {"reason"}, (method, url, body, answer)
    assert {200, 204, 400, 404, 409, 412} <= statuses.keys()
