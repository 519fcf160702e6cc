"""Permissions of Iggy's users as JSON, in both directions: everywhere, in streams and in topics by their numbers."""

from dataclasses import fields
from typing import Any

from pydantic import BaseModel, Field

from millstream.wire.iggy.messages.users import (
    GlobalPermissions,
    Permissions,
    StreamPermissions,
    TopicPermissions,
)

__all__ = ["PermissionsForm", "permissions_form"]


class TopicRights(BaseModel):
    """What a user may do in one topic."""

    manage_topic: bool
    read_topic: bool
    poll_messages: bool
    send_messages: bool


class StreamRights(BaseModel):
    """What a user may do in one stream."""

    manage_stream: bool
    read_stream: bool
    manage_topics: bool
    read_topics: bool
    poll_messages: bool
    send_messages: bool
    topics: dict[int, TopicRights] | None = None


class GlobalRights(BaseModel):
    """What a user may do everywhere."""

    manage_servers: bool
    read_servers: bool
    manage_users: bool
    read_users: bool
    manage_streams: bool
    read_streams: bool
    manage_topics: bool
    read_topics: bool
    poll_messages: bool
    send_messages: bool


class PermissionsForm(BaseModel):
    """What a user may do."""

    everywhere: GlobalRights = Field(alias="global")
    streams: dict[int, StreamRights] | None = None

    def message(self) -> Permissions:
        """The same as the binary protocol has it."""
        streams = []
        for number, rights in (self.streams or {}).items():
            topics = [
                TopicPermissions(topic=topic, **mine.model_dump()) for topic, mine in (rights.topics or {}).items()
            ]
            streams.append(StreamPermissions(stream=number, topics=topics, **rights.model_dump(exclude={"topics"})))
        return Permissions(everywhere=GlobalPermissions(**self.everywhere.model_dump()), streams=streams)


def permissions_form(permissions: Permissions | None) -> dict[str, Any] | None:
    """What a user may do, as an answer tells it; None for nothing at all."""
    if permissions is None:
        return None
    streams = {}
    for one in permissions.streams:
        topics = {topic.topic: TopicRights(**_rights(topic, "topic")) for topic in one.topics}
        streams[one.stream] = StreamRights(**_rights(one, "stream", "topics"), topics=topics or None)
    everywhere = GlobalRights(**_rights(permissions.everywhere))
    return {
        "global": everywhere.model_dump(),
        "streams": {str(number): rights.model_dump() for number, rights in streams.items()} or None,
    }


def _rights(message: Any, *without: str) -> dict[str, bool]:
    return {one.name: getattr(message, one.name) for one in fields(message) if one.name not in without}
