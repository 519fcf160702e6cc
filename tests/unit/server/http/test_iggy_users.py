"""Who is let in to the Iggy HTTP API, and what they may do."""

from collections.abc import Callable

import millstream
from tests.unit.server.http.iggy_visitor import Visitor, outgoing


def test_without_a_token_there_is_nothing_but_the_login(http_broker: millstream.Broker) -> None:
    nobody = Visitor(http_broker, "")
    assert nobody("GET", "/ping") == "pong"
    assert nobody.refused(401, "unauthenticated", "GET", "/streams")["id"] == 40
    nobody.bearer = "rubbish"
    nobody.refused(401, "unauthenticated", "GET", "/streams")
    wrong = {"username": "iggy", "password": "wrong"}
    assert nobody.refused(400, "invalid_credentials", "POST", "/users/login", wrong)["id"] == 42


def test_a_logout_revokes_the_token_that_it_came_with(http_broker: millstream.Broker) -> None:
    one, other = Visitor(http_broker), Visitor(http_broker)
    one.done("DELETE", "/users/logout")
    one.refused(401, "unauthenticated", "GET", "/users/me")
    one.refused(401, "unauthenticated", "POST", "/users/refresh-token", {"token": one.bearer})
    assert other("GET", "/users/me")["username"] == "iggy"


def test_a_token_is_changed_for_a_new_one(http_broker: millstream.Broker) -> None:
    visitor = Visitor(http_broker)
    identity = visitor("POST", "/users/refresh-token", {"token": visitor.bearer})
    assert identity["user_id"] == visitor("GET", "/users/me")["id"]
    renewed = Visitor(http_broker, identity["access_token"]["token"])
    assert renewed("GET", "/streams") is not None
    assert renewed.bearer != visitor.bearer


def test_personal_tokens(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    visitor = Visitor(http_broker)
    name = unique("token")
    raw = visitor("POST", "/personal-access-tokens", {"name": name, "expiry": 0})["token"]
    told = {one["name"]: one["expiry_at"] for one in visitor("GET", "/personal-access-tokens")}
    assert told[name] is None
    as_bearer = Visitor(http_broker, raw)
    assert as_bearer("GET", "/users/me")["username"] == "iggy"
    identity = Visitor(http_broker, "")("POST", "/personal-access-tokens/login", {"token": raw})
    assert Visitor(http_broker, identity["access_token"]["token"])("GET", "/streams") is not None
    again = {"name": name, "expiry": 0}
    refusal = visitor.refused(400, "personal_access_token_already_exists", "POST", "/personal-access-tokens", again)
    assert refusal["field"] == "name"
    visitor.done("DELETE", f"/personal-access-tokens/{name}")
    as_bearer.refused(401, "unauthenticated", "GET", "/users/me")
    visitor.refused(401, "invalid_personal_access_token", "POST", "/personal-access-tokens/login", {"token": raw})


def test_a_user_does_what_is_permitted(http_broker: millstream.Broker, unique: Callable[[str], str]) -> None:
    root = Visitor(http_broker)
    stream, name = unique("stream"), unique("bob")
    root.make(stream)
    number = root("GET", f"/streams/{stream}")["id"]
    in_topic = {"manage_topic": False, "read_topic": False, "poll_messages": False, "send_messages": True}
    in_stream = dict.fromkeys(
        ["manage_stream", "read_stream", "manage_topics", "read_topics", "poll_messages", "send_messages"], False
    )
    nowhere = root("GET", "/users/me")["permissions"]["global"] | dict.fromkeys(
        root("GET", "/users/me")["permissions"]["global"], False
    )
    rights = {"global": nowhere, "streams": {str(number): {**in_stream, "topics": {"0": in_topic}}}}
    made = root("POST", "/users", {"username": name, "password": "secret", "status": "active", "permissions": rights})
    assert made["permissions"] == rights
    bob = Visitor(http_broker, root.log_in(name, "secret"))
    bob("POST", f"~{stream}/messages", outgoing(b"x"))
    assert bob.status == 201
    bob.refused(403, "unauthorized", "GET", f"~{stream}/messages")
    root.done("PUT", f"/users/{name}/permissions", {"permissions": None})
    bob.refused(403, "unauthorized", "POST", f"~{stream}/messages", outgoing(b"x"))
    root.done("PUT", f"/users/{name}/password", {"current_password": "secret", "new_password": "better"})
    root.done("PUT", f"/users/{made['id']}", {"username": f"{name}-b"})
    assert bob("GET", "/users/me")["username"] == f"{name}-b"
    root.done("DELETE", f"/users/{name}-b")
    assert root("GET", f"/users/{name}-b") == {
        "id": 404,
        "code": "not_found",
        "reason": "Resource not found",
        "field": None,
    }
    bob.refused(401, "unauthenticated", "GET", "/users/me")
    root.refused(404, "resource_not_found", "DELETE", f"/users/{name}-b")
