"""Who may do what."""

import json
from typing import Any

import pytest

from millstream.broker.permissions import Action, Everywhere, InStream, InTopic, Permissions, may

NOBODY = Permissions()


def _one(name: str) -> dict[str, Any]:
    return {name: True}


@pytest.mark.parametrize("action", list(Action))
def test_all_and_nothing(action: Action) -> None:
    assert may(Permissions.all(), action, 1, 2)
    assert not may(NOBODY, action, 1, 2)


@pytest.mark.parametrize("action", list(Action))
def test_every_right_does_what_it_says(action: Action) -> None:
    for name in Everywhere.__slots__:
        rights = Permissions(everywhere=Everywhere(**{name: True}))
        assert may(rights, action, 1, 2) == (name in action.everywhere)
    for name in InStream.__slots__[:-1]:
        rights = Permissions(streams={1: InStream(**_one(name))})
        assert may(rights, action, 1, 2) == (name in action.in_stream)
        assert not may(rights, action, 5, 2)
        assert not may(rights, action)
    for name in InTopic.__slots__:
        rights = Permissions(streams={1: InStream(topics={2: InTopic(**{name: True})})})
        assert may(rights, action, 1, 2) == (name in action.in_topic)
        assert not may(rights, action, 1, 5)
        assert not may(rights, action, 5, 2)
        assert not may(rights, action, 1)


def test_managing_implies_reading() -> None:
    assert may(Permissions(everywhere=Everywhere(manage_streams=True)), Action.POLL, 1, 2)
    assert not may(Permissions(everywhere=Everywhere(read_streams=True)), Action.SEND, 1, 2)


def test_what_is_stored_is_read() -> None:
    topics = {2: InTopic(read_topic=True), 3: InTopic()}
    rights = Permissions(
        everywhere=Everywhere(read_users=True), streams={1: InStream(read_stream=True, topics=topics)}
    )
    assert Permissions.of_document(json.loads(json.dumps(rights.document()))) == rights
