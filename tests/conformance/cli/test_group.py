"""`millstream group`, and `consume --group`, against a server."""

import json
import signal
from collections.abc import Callable
from typing import Any

NewTopic = Callable[..., str]


def test_a_group_goes_on_where_it_left_off(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    group = f"{topic}-readers"
    millstream("produce", topic, text=b"a\nb\nc\nd\n")
    assert millstream("consume", topic, "--group", group, "--count", "2").stdout == b"a\nb\n"
    partition = ["partition", topic, "0", "2", "4", "2", "-"]
    assert millstream.lines("group", "describe", group) == [["group", group, "empty", "-"], partition]
    assert [group, "empty", "0", "consumer", "-"] in millstream.lines("group", "list")
    assert millstream("consume", topic, "--group", group, "--until-end").stdout == b"c\nd\n"
    assert millstream("consume", topic, "--group", group, "--until-end").stdout == b""
    found = json.loads(millstream("group", "describe", group, "--json").stdout)
    assert [(each["committed"], each["end"], each["lag"]) for each in found["partitions"]] == [(4, 4, 0)]


def test_a_member_is_shown_and_commits_when_it_is_interrupted(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    group = f"{topic}-readers"
    millstream("produce", topic, "--partition", "1", text=b"a\n")
    with millstream.start("consume", topic, "--group", group) as member:
        assert member.stdout.readline() == b"a\n"
        found = json.loads(millstream("group", "describe", group, "--json").stdout)
        assert found["state"] == "stable"
        [shown] = found["members"]
        assert shown["client_id"] == "millstream-cli"
        assert "127.0.0.1" in shown["host"]
        assert shown["assignment"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 1}]
        assert {each["member"] for each in found["partitions"]} == {shown["member"]}
        assert [group, "stable", "1", "consumer", "range"] in millstream.lines("group", "list")
        member.send_signal(signal.SIGINT)
        assert member.wait(timeout=20) == 0
        assert member.stderr.read() == b""
    rows = [row[1:6] for row in millstream.lines("group", "describe", group) if row[0] == "partition"]
    assert [topic, "1", "1", "1", "0"] in rows


def test_an_unknown_group(millstream: Any, topic: str) -> None:
    failed = millstream("group", "describe", topic, status=1)
    assert failed.stderr.decode() == (
        f"error: there is no group '{topic}'; 'millstream group list' shows those there are\n"
    )


def test_groups_are_deleted_unless_they_have_members(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    one, other = f"{topic}-one", f"{topic}-other"
    millstream("produce", topic, text=b"a\nb\n")
    for group in (one, other):
        assert millstream("consume", topic, "--group", group, "--count", "1").stdout == b"a\n"
    with millstream.start("consume", topic, "--group", other) as member:
        assert member.stdout.readline() == b"b\n"
        failed = millstream("group", "delete", one, other, status=1)
        assert failed.stdout.decode() == f"deleted group {one}\n"
        assert failed.stderr.decode() == (
            f"error: the group '{other}' has members; stop them: 'millstream group describe {other}'\n"
        )
        member.send_signal(signal.SIGINT)
        assert member.wait(timeout=20) == 0
    millstream("group", "describe", one, status=1)
    # It begins anew.
    assert millstream("consume", topic, "--group", one, "--count", "1").stdout == b"a\n"
    assert millstream("group", "delete", "--yes", other, one).stdout.decode().count("deleted group ") == 2
    failed = millstream("group", "delete", one, status=1)
    assert failed.stderr.decode().startswith(f"error: there is no group '{one}'; ")
    assert millstream("group", "delete", "--if-exists", one).stdout == b""
