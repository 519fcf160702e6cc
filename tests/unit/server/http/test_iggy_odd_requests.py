"""Every route of the Iggy HTTP API with odd names and odd bodies: the fault is never the server's."""

import itertools
import re
from collections import Counter
from collections.abc import Callable

import millstream
from tests.unit.server.http.iggy_visitor import Visitor, outgoing
from tests.unit.server.http.test_odd_requests import BODIES, NAMES

ODD_BODIES = [
    *BODIES,
    {"name": "", "partitions_count": 2**40},
    {"name": "n" * 300, "partitions_count": 1, "options": {"segment_size": "-1"}},
    {"name": "t1", "message_expiry": -1},
    {"username": "é" * 200, "password": "", "status": "active"},
    {"permissions": {"global": {}, "streams": {"x": None}}},
    {"consumer_id": [], "offset": 2**64},
    outgoing(b"x") | {"messages": [{"payload": "eA==", "id": 2**128}]},
    outgoing(b"x") | {"messages": [{"payload": "eA==", "user_headers": [{"key": {}, "value": {}}]}]},
]


def test_no_request_is_the_servers_fault(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    iggy, stream = Visitor(http_broker), unique("odd")
    iggy.make(stream)
    there = {"stream_id": stream, "topic_id": "t1", "user_id": "nobody", "scope": "topic", "group_id": "g1"}
    names = itertools.cycle(NAMES)
    statuses: Counter[int] = Counter()
    for path, operations in iggy("GET", "/openapi.json")["paths"].items():
        for method, operation in operations.items():
            if "iggy" not in operation["tags"] or path in {"/users/logout", "/streams/{stream_id}/purge"}:
                continue
            parts = re.findall(r"\{(\w+)\}", path)
            bodies = ODD_BODIES if method in {"post", "put"} else BODIES[:3]
            usual = {part: there.get(part, "1") for part in parts}
            for body, name in zip(bodies, names, strict=False):
                # What is there is not deleted: the others need it.
                given = [] if method == "delete" else [usual]
                for values in [*given, usual | dict.fromkeys(parts[-1:], name)]:
                    answer = iggy(method.upper(), path.format(**values), body)
                    statuses[iggy.status] += 1
                    assert iggy.status < 500, (method, path, name, body, answer)
    assert {200, 400, 404, 422} <= statuses.keys()
