"""The current Iggy client, which lives in an environment of its own: a process there does what it is told."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.matrix.message import Message
from tests.support.client_venv import client_venv

__all__ = ["DEFAULT_STREAM", "PACKAGE", "Iggy", "IggyRefused"]

ROOT = Path(__file__).parents[2]
PACKAGE: Final = "apache-iggy 0.9.0"
DEFAULT_STREAM: Final = "default"
_POLL_MAX: Final = 1000


class IggyRefused(Exception):
    """The client raised an error."""


class Iggy:
    """An Iggy client.

    Args:
        address: HOST:PORT of the server.
    """

    def __init__(self, address: str) -> None:
        python = client_venv(PACKAGE.replace(" ", "-"), [PACKAGE.replace(" ", "==")])
        command = [str(python), "-m", "tests.matrix.iggy_worker", address]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def _do(self, **job: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, "the Iggy client ended"
        answer = json.loads(line)
        if "error" in answer:
            raise IggyRefused(answer["error"])
        return answer["answer"]

    def call(self, method: str, *wanted: str, **arguments: Any) -> Any:
        """Call a method of the client; gives the attributes wanted of each row of the answer."""
        return self._do(do="call", method=method, wanted=wanted, arguments=arguments)

    def consume(self, topic: str, group: str, count: int, stream: str = DEFAULT_STREAM) -> list[bytes]:
        """Take some messages as a member of a group, and store how far that was."""
        taken = self._do(do="consume", stream=stream, topic=topic, group=group, count=count)
        return [bytes.fromhex(one) for one in taken]

    def write(
        self, topic: str, messages: Sequence[Message], *, batch: int = 100, stream: str = DEFAULT_STREAM
    ) -> None:
        """Write messages to their partitions, so many in a request."""
        for partition in sorted({one.partition for one in messages}):
            mine = [one for one in messages if one.partition == partition]
            for start in range(0, len(mine), batch):
                told = [_told(one) for one in mine[start : start + batch]]
                self._do(do="send", stream=stream, topic=topic, partition=partition, messages=told)

    def read(self, topics: dict[str, int], partitions: int) -> dict[str, list[Message]]:
        """Read topics from beginning to end."""
        found = {}
        for topic, count in topics.items():
            found[topic] = [one for partition in range(partitions) for one in self.poll(topic, partition=partition)]
            assert len(found[topic]) == count, topic
        return found

    def poll(
        self,
        topic: str,
        strategy: tuple[Any, ...] = ("First",),
        *,
        partition: int = 0,
        count: int = _POLL_MAX,
        stream: str = DEFAULT_STREAM,
    ) -> list[Message]:
        """Poll once."""
        answer = self._do(do="poll", stream=stream, topic=topic, partition=partition, strategy=strategy, count=count)
        return [_message(one, partition) for one in answer]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


def _told(one: Message) -> dict[str, Any]:
    headers = [[name, one.kinds.get(name, "raw"), (value or b"").hex()] for name, value in one.headers]
    return {"value": (one.value or b"").hex(), "headers": headers, "number": one.number}


def _message(told: dict[str, Any], partition: int) -> Message:
    return Message(
        value=bytes.fromhex(told["value"]),
        headers=tuple((name, bytes.fromhex(value)) for name, _, value in told["headers"]),
        kinds={name: kind for name, kind, _ in told["headers"]},
        time_us=told["origin"],
        number=told["number"],
        partition=partition,
        offset=told["offset"],
    )
