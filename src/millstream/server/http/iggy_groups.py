"""Consumer groups of the Iggy protocol. Nobody is a member over HTTP: there is no connection that could end."""

from typing import Any, Final

from pydantic import BaseModel

from millstream.server.http.iggy_call import CallArgument, identifier, iggy_router, served, served_or_missing
from millstream.server.http.iggy_forms import group_details_form, group_form
from millstream.sessions.iggy import groups
from millstream.wire.iggy.messages.groups import CreateGroup, GroupRequest
from millstream.wire.iggy.messages.topics import TopicRequest

__all__ = ["router"]

router = iggy_router()
_GROUPS: Final = "/streams/{stream_id}/topics/{topic_id}/consumer-groups"
_GROUP: Final = _GROUPS + "/{group_id}"


class NewGroup(BaseModel):
    """A group to be made."""

    name: str


def _request(stream_id: str, topic_id: str, group_id: str) -> GroupRequest:
    return GroupRequest(stream=identifier(stream_id), topic=identifier(topic_id), group=identifier(group_id))


@router.get(_GROUPS)
async def get_groups(call: CallArgument, stream_id: str, topic_id: str) -> list[dict[str, Any]]:
    """The groups of a topic."""
    request = TopicRequest(stream=identifier(stream_id), topic=identifier(topic_id))
    return [group_form(one) for one in (await served_or_missing(call, groups.get_all, request)).groups]


@router.get(_GROUP)
async def get_group(call: CallArgument, stream_id: str, topic_id: str, group_id: str) -> dict[str, Any]:
    """A group and its members."""
    return group_details_form(await served_or_missing(call, groups.get, _request(stream_id, topic_id, group_id)))


@router.post(_GROUPS)
async def create_group(call: CallArgument, stream_id: str, topic_id: str, body: NewGroup) -> dict[str, Any]:
    """Make a group."""
    request = CreateGroup(stream=identifier(stream_id), topic=identifier(topic_id), name=body.name)
    made = await served(call, groups.create, request)
    assert made.group is not None, "the dialect has it"
    return {**group_form(made.group), "members": []}


@router.delete(_GROUP, status_code=204)
async def delete_group(call: CallArgument, stream_id: str, topic_id: str, group_id: str) -> None:
    """Delete a group and its offsets."""
    await served(call, groups.delete, _request(stream_id, topic_id, group_id))
