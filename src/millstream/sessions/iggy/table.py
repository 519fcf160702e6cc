"""The one table of this protocol: each command, who serves it, and who may send it.

What the documentation lists and what the tests go through comes from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from millstream.sessions.iggy import (
    groups,
    login,
    offsets,
    partitions,
    poll,
    send,
    snapshot,
    streams,
    system,
    topics,
    users,
)
from millstream.sessions.iggy.call import Call
from millstream.wire.iggy.commands import BY_CODE, Command

__all__ = ["ENTRIES", "Access", "Entry"]


class Access(Enum):
    """Who may send a command."""

    ANYONE = "before a login too"
    LOGIN = "before a login, which it is"
    USER = "after a login"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command as it is served.

    Args:
        command: its layouts.
        handle: makes the answer, or one that comes later, or its bytes where they are not made of a message.
        access: who may send it.
        missing_is_empty: whether an answer without content, in place of an error, says that there is no such thing;
            so from dialect B3 on.
        in_turn: whether the requests behind one that waits are served after it. Not those whose effect is there at
            once, and which wait for the disk alone.
    """

    command: Command
    handle: Callable[[Call, Any], Any]
    access: Access = Access.USER
    missing_is_empty: bool = False
    in_turn: bool = True


def _entry(code: int, handle: Callable[[Call, Any], Any], access: Access = Access.USER) -> Entry:
    command = BY_CODE[code]
    return Entry(command, handle, access, code in _MISSING_IS_EMPTY, code not in _AT_ONCE)


_MISSING_IS_EMPTY: Final = frozenset({21, 31, 120, 200, 300, 600})
_AT_ONCE: Final = frozenset({101, 102, 121})

ENTRIES: Final[Mapping[int, Entry]] = {
    entry.command.code: entry
    for entry in (
        _entry(1, system.ping, Access.ANYONE),
        _entry(10, system.stats),
        _entry(11, snapshot.snapshot),
        _entry(12, system.cluster_metadata),
        _entry(13, topics.describe_options),
        _entry(20, system.get_me),
        _entry(21, system.get_client),
        _entry(22, system.get_clients),
        _entry(31, users.get),
        _entry(32, users.get_all),
        _entry(33, users.create),
        _entry(34, users.delete),
        _entry(35, users.update),
        _entry(36, users.update_permissions),
        _entry(37, users.change_password),
        _entry(38, login.log_in, Access.LOGIN),
        _entry(39, login.log_out),
        _entry(40, login.register, Access.LOGIN),
        _entry(41, users.get_tokens),
        _entry(42, users.create_token),
        _entry(43, users.delete_token),
        _entry(44, login.log_in_with_token, Access.LOGIN),
        _entry(100, poll.handle),
        _entry(101, send.handle),
        _entry(102, send.flush),
        _entry(120, offsets.get),
        _entry(121, offsets.store),
        _entry(122, offsets.delete),
        _entry(200, streams.get),
        _entry(201, streams.get_all),
        _entry(202, streams.create),
        _entry(203, streams.delete),
        _entry(204, streams.update),
        _entry(205, streams.purge),
        _entry(300, topics.get),
        _entry(301, topics.get_all),
        _entry(302, topics.create),
        _entry(303, topics.delete),
        _entry(304, topics.update),
        _entry(305, topics.purge),
        _entry(402, partitions.create),
        _entry(403, partitions.delete),
        _entry(503, partitions.delete_segments),
        _entry(600, groups.get),
        _entry(601, groups.get_all),
        _entry(602, groups.create),
        _entry(603, groups.delete),
        _entry(604, groups.join),
        _entry(605, groups.leave),
        _entry(606, groups.sync),
    )
}
"""By code."""
