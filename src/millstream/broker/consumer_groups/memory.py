"""What lasts of consumer groups: their members, who so go on after a restart of the server as if nothing had been.

A document for each member has what it said, its epoch and its partitions. It is written when one of these changes,
not with each heartbeat; and whoever is told of a change is told once it lasts, so that nobody knows more than what
lasts. A target does not last: the assignors keep what members have, so that the first one after a start is the one
before, or completes it.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from millstream.broker.any_group import Protocol
from millstream.broker.consumer_groups.member import ClassicDetails, ConsumerMember, MemberState
from millstream.broker.consumer_groups.requests import TopicPattern
from millstream.broker.documents import Document, DocumentChange, Documents
from millstream.broker.offsets import Place
from millstream.model.pending import Pending, settled

__all__ = ["MEMBER_DOCUMENT", "GroupMemory", "recall"]

MEMBER_DOCUMENT: Final = "consumer-group-member"
_TOLD: Final = (
    "rack_id",
    "client_id",
    "client_host",
    "rebalance_timeout_ms",
    "assignor",
    "epoch",
    "previous_epoch",
)
"""Fields of a member that stand in its document as they are."""


class GroupMemory:
    """The members of all groups, as they last.

    Args:
        documents: where they do.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def keep(self, group_id: str, members: Mapping[str, ConsumerMember], touched: Collection[str]) -> Pending[None]:
        """Let last what members are now.

        Args:
            group_id: their group's name.
            members: those in it, by id.
            touched: the ids of those who have changed, come, or gone.
        """
        changes: list[DocumentChange] = []
        for member_id in touched:
            member, key = members.get(member_id), _key(group_id, member_id)
            if member is not None:
                changes.append((MEMBER_DOCUMENT, key, _document(group_id, member)))
            elif self._documents.find(MEMBER_DOCUMENT, key) is not None:
                changes.append((MEMBER_DOCUMENT, key, None))
        return self._documents.change(changes) if changes else settled(None)

    def groups(self) -> dict[str, list[Document]]:
        """The members of each group that has any."""
        found: dict[str, list[Document]] = {}
        for document in self._documents.of_kind(MEMBER_DOCUMENT).values():
            found.setdefault(document["group"], []).append(document)
        return found


def _key(group_id: str, member_id: str) -> str:
    # Clients choose both names, with whatever signs and as long as they like, and databases' keys take less.
    return hashlib.sha256(f"{len(group_id)}/{group_id}/{member_id}".encode()).hexdigest()


def _document(group_id: str, member: ConsumerMember) -> dict[str, Any]:
    return {
        "group": group_id,
        "id": member.id,
        "instance_id": member.instance_id,
        **{name: getattr(member, name) for name in _TOLD},
        "topics": sorted(member.topics),
        "pattern": list(member.pattern),
        "state": member.state.value,
        "assigned": _listed(member.assigned),
        "revoking": _listed(member.revoking),
        "classic": None if member.classic is None else _classic(member.classic),
    }


def _classic(details: ClassicDetails) -> dict[str, Any]:
    protocols = [[protocol.name, b64encode(protocol.metadata).decode()] for protocol in details.protocols]
    return {"session_timeout_ms": details.session_timeout_ms, "protocols": protocols}


def recall(member: ConsumerMember, document: Document) -> None:
    """Let a member be what it was, but for its ids, its target and what its pattern stands for."""
    for name in _TOLD:
        setattr(member, name, document[name])
    member.topics = frozenset(document["topics"])
    member.pattern = TopicPattern(*document["pattern"])
    member.state = MemberState(document["state"])
    member.assigned, member.revoking = _places(document["assigned"]), _places(document["revoking"])
    classic = document["classic"]
    if classic is not None:
        protocols = tuple(Protocol(name, b64decode(content)) for name, content in classic["protocols"])
        member.classic = ClassicDetails(classic["session_timeout_ms"], protocols)


def _listed(places: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic_id, index in sorted(places):
        found.setdefault(str(topic_id), []).append(index)
    return found


def _places(listed: Mapping[str, Iterable[int]]) -> frozenset[Place]:
    return frozenset((UUID(topic_id), index) for topic_id, indexes in listed.items() for index in indexes)
