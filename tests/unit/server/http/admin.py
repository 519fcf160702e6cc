"""A caller of the HTTP API, and records to find there."""

import http.client
import json
from typing import Any

from confluent_kafka import Producer

from millstream.library import Broker

__all__ = ["Admin", "produce"]


class Admin:
    """Calls the API of a running server; what is answered stands in `status` and `headers` then.

    Args:
        broker: the server.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.status = 0
        self.headers: dict[str, str] = {}

    def __call__(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Any:
        """Call; gives the answer's JSON, or its bytes if it is none, or None if it is empty.

        Args:
            path: with `~` for the paths of topics in public/default.
        """
        path = path.replace("~", "/admin/v2/persistent/public/default", 1)
        content = raw if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.broker.http, timeout=20)
        connection.request(method, path, content)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        self.status, self.headers = response.status, dict(response.headers)
        if not answer:
            return None
        try:
            return json.loads(answer)
        except ValueError:
            return answer

    def done(self, method: str, path: str, body: Any = None) -> None:
        """Call for something that answers with nothing."""
        assert self(method, path, body) is None
        assert self.status == 204

    def refused(self, status: int, method: str, path: str, body: Any = None) -> str:
        """Call for something that is refused; gives the reason."""
        answer = self(method, path, body)
        assert self.status == status, answer
        assert set(answer) == {"reason"}
        return str(answer["reason"])


def produce(broker: Broker, topic: str, count: int, partition: int = 0) -> None:
    """Write some records, each in a batch of its own."""
    producer = Producer({"bootstrap.servers": broker.kafka, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, b"v%d" % number, partition=partition)
        assert producer.flush(20) == 0
