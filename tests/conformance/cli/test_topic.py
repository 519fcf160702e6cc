"""`millstream topic` against a server."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from typing import Any


def test_life_of_a_topic(millstream: Any, topic: str) -> None:
    created = millstream("topic", "create", topic, "--partitions", "3", "--config", "retention.ms=86400000")
    assert created.stdout.decode() == f"created topic {topic}\n"
    assert [topic, "3"] in millstream.lines("topic", "list")
    assert millstream.lines("topic", "describe", topic) == [
        ["partition", "0", "0", "0", "0"],
        ["partition", "1", "0", "0", "0"],
        ["partition", "2", "0", "0", "0"],
        ["config", "retention.ms", "86400000"],
    ]
    deleted = millstream("topic", "delete", topic)
    assert deleted.stdout.decode() == f"deleted topic {topic}\n"
    assert topic not in [name for name, _ in millstream.lines("topic", "list")]


def test_json(millstream: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    millstream("produce", topic, "--partition", "1", text=b"a\nb\n")
    assert {"name": topic, "partitions": 2} in json.loads(millstream("topic", "list", "--json").stdout)
    assert json.loads(millstream("topic", "describe", topic, "--json").stdout) == {
        "name": topic,
        "partitions": [
            {"partition": 0, "earliest": 0, "latest": 0, "records": 0},
            {"partition": 1, "earliest": 0, "latest": 2, "records": 2},
        ],
        "configs": {},
    }
    every = json.loads(millstream("topic", "describe", topic, "--json", "--all-configs").stdout)["configs"]
    assert "retention.ms" in every


def test_errors(millstream: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    again = millstream("topic", "create", topic, status=1)
    assert again.stderr.decode().startswith(f"error: topic '{topic}' exists already; ")
    millstream("topic", "create", topic, "--if-not-exists")
    bad_value = millstream("topic", "create", f"{topic}-2", "--config", "retention.ms=soon", status=1)
    assert bad_value.stderr.decode().startswith(f"error: topic '{topic}-2' was not created: ")
    assert "retention.ms" in bad_value.stderr.decode()
    bad_name = millstream("topic", "create", "no/slash", status=1)
    assert bad_name.stderr.decode().startswith("error: topic 'no/slash' was not created: ")
    for error in (again, bad_value, bad_name):
        assert error.stderr.count(b"\n") == 1


def test_an_unknown_topic(millstream: Any, topic: str) -> None:
    expected = f"error: there is no topic '{topic}'; 'millstream topic list' shows those there are\n"
    for args in (["topic", "describe", topic], ["topic", "delete", topic], ["consume", topic]):
        assert millstream(*args, status=1).stderr.decode() == expected
    millstream("topic", "delete", "--if-exists", topic)


def test_on_a_terminal_it_asks_and_prints_tables(millstream: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic()

    def on_a_terminal(*args: str, answer: bytes = b"") -> tuple[int, str]:
        controller, terminal = pty.openpty()
        with millstream.start(*args, stdin=terminal, stdout=terminal, stderr=subprocess.STDOUT) as process:
            os.close(terminal)
            os.write(controller, answer)
            shown = b""
            # A closed terminal is an error of the operating system, and how the output ends.
            while chunk := _read(controller):
                shown += chunk
            status = process.wait(timeout=60)
        os.close(controller)
        return status, shown.decode()

    status, shown = on_a_terminal("topic", "list")
    assert status == 0
    assert "partitions" in shown
    assert topic in shown
    status, shown = on_a_terminal("topic", "delete", topic, answer=b"n\n")
    assert status == 1
    assert f"Delete {topic} with all records? [y/N]" in shown
    assert topic in [name for name, _ in millstream.lines("topic", "list")]
    status, shown = on_a_terminal("topic", "delete", topic, answer=b"y\n")
    assert status == 0
    assert f"deleted topic {topic}" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
