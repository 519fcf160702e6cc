"""A caller of the Iggy HTTP API who has logged in."""

import http.client
import json
from base64 import b64encode
from typing import Any

from millstream.library import Broker

__all__ = ["Visitor", "encoded", "outgoing"]


class Visitor:
    """Calls the API of a running server; what is answered stands in `status` and `headers` then.

    Args:
        broker: the server.
        bearer: the token to show; None to log in as the root user.
    """

    def __init__(self, broker: Broker, bearer: str | None = None) -> None:
        self.broker = broker
        self.status = 0
        self.headers: dict[str, str] = {}
        self.bearer = bearer or ""
        if bearer is None:
            self.bearer = self.log_in("iggy", "iggy")

    def log_in(self, name: str, password: str) -> str:
        """Log in; gives the access token."""
        identity = self("POST", "/users/login", {"username": name, "password": password})
        return str(identity["access_token"]["token"])

    def __call__(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Any:
        """Call; gives the answer's JSON, or its text or bytes if it is none, or None if it is empty.

        Args:
            path: with `~` for the topic t1 of the stream that follows it.
        """
        head, tilde, stream = path.partition("~")
        if tilde:
            name, slash, rest = stream.partition("/")
            path = f"{head}/streams/{name}/topics/t1{slash}{rest}"
        content = raw if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        if self.bearer:
            headers["authorization"] = f"Bearer {self.bearer}"
        connection = http.client.HTTPConnection(self.broker.http, timeout=20)
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        self.status, self.headers = response.status, dict(response.headers)
        if not answer:
            return None
        kind = self.headers["content-type"]
        return json.loads(answer) if "json" in kind else answer if "zip" in kind else answer.decode()

    def done(self, method: str, path: str, body: Any = None) -> None:
        """Call for something that answers with nothing."""
        assert self(method, path, body) is None
        assert self.status == 204

    def refused(self, status: int, code: str, method: str, path: str, body: Any = None) -> Any:
        """Call for something that is refused; gives the whole answer."""
        answer = self(method, path, body)
        assert (self.status, answer["code"]) == (status, code), answer
        assert set(answer) == {"id", "code", "reason", "field"}
        return answer

    def make(self, stream: str, partitions: int = 1) -> None:
        """Make a stream with the topic t1."""
        self("POST", "/streams", {"name": stream})
        self("POST", f"/streams/{stream}/topics", {"name": "t1", "partitions_count": partitions})
        assert self.status == 200


def encoded(value: bytes | int) -> str:
    """Bytes, or a partition's number, as the API has them."""
    return b64encode(value.to_bytes(4, "little") if isinstance(value, int) else value).decode()


def outgoing(*payloads: bytes, partition: int = 0) -> dict[str, Any]:
    """A body that sends messages to a partition."""
    return {
        "partitioning": {"kind": "partition_id", "value": encoded(partition)},
        "messages": [{"payload": encoded(payload)} for payload in payloads],
    }
