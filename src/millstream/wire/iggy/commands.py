"""Every command of the protocol: its code, its operation in dialect D, its request and its answer, and who has it.

What the server answers, the documentation and the tests are driven from this table; the layouts that it names are
tables of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.documented import FORMS, read_documented
from millstream.wire.iggy.layout import decode, encode
from millstream.wire.iggy.messages import batches, groups, offsets, register, streams, system, topics, users

__all__ = ["BY_CODE", "BY_OPERATION", "COMMANDS", "NON_REPLICATED", "Command"]

NON_REPLICATED: Final = 2
"""The operation of dialect D that stands for the command whose code is in the header."""
_RESULT_OPERATIONS: Final = frozenset({1, *range(64, 69), *range(128, 150), 161, 162})
"""Operations whose answers begin with a count of results: 0 for success."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Args:
        code: its number in dialects A to C, and in D with operation 2.
        name: as the protocol's documents have it.
        request, response: the messages.
        operation: its number in dialect D; `NON_REPLICATED` for a read.
        since, until: the first and the last dialect that has it.
    """

    code: int
    name: str
    request: type[Any]
    response: type[Any] = system.Empty
    operation: int = NON_REPLICATED
    since: Dialect = Dialect.A
    until: Dialect = Dialect.D12

    @property
    def has_results(self) -> bool:
        """Whether its answer in dialect D begins with a count of results."""
        return self.operation in _RESULT_OPERATIONS

    def in_dialect(self, dialect: Dialect) -> bool:
        """Whether a dialect has it."""
        return self.since <= dialect <= self.until

    def decode_request(self, dialect: Dialect, payload: memoryview) -> Any:
        """Read a request. Raises Refused."""
        if dialect is Dialect.A and self.request in FORMS:
            found = read_documented(self.request, payload)
            if found is not None:
                return found
        return decode(self.request, dialect, payload)

    def encode_response(self, dialect: Dialect, response: object) -> bytearray:
        """The bytes of an answer."""
        return encode(response, dialect)


_B1, _B2, _C2, _C3, _D0, _D = Dialect.B1, Dialect.B2, Dialect.C2, Dialect.C3, Dialect.D0, Dialect.D
_Empty = system.Empty

COMMANDS: Final = (
    Command(1, "PING", _Empty),
    Command(10, "GET_STATS", _Empty, system.ServerStats),
    Command(11, "GET_SNAPSHOT", system.SnapshotRequest, batches.Archive, since=_C3),
    Command(12, "GET_CLUSTER_METADATA", _Empty, system.ClusterMetadata, since=_C2),
    Command(13, "DESCRIBE_OPTIONS", system.DescribeOptions, system.OptionList, since=_D),
    Command(20, "GET_ME", _Empty, system.ClientDetails),
    Command(21, "GET_CLIENT", system.ClientRequest, system.ClientDetails),
    Command(22, "GET_CLIENTS", _Empty, system.ClientList),
    Command(31, "GET_USER", users.UserRequest, users.UserDetails, since=_B1),
    Command(32, "GET_USERS", _Empty, users.UserList, since=_B1),
    Command(33, "CREATE_USER", users.CreateUser, users.UserDetails, 141, since=_B1),
    Command(34, "DELETE_USER", users.UserRequest, operation=143, since=_B1),
    Command(35, "UPDATE_USER", users.UpdateUser, operation=142, since=_B1),
    Command(36, "UPDATE_PERMISSIONS", users.UpdatePermissions, operation=145, since=_B1),
    Command(37, "CHANGE_PASSWORD", users.ChangePassword, operation=144, since=_B1),
    Command(38, "LOGIN_USER", users.LoginUser, users.LoginReply, since=_B1, until=_C3),
    Command(39, "LOGOUT_USER", _Empty, operation=3, since=_B1),
    Command(40, "LOGIN_REGISTER", register.Register, register.RegisterReply, 1, since=_D0),
    Command(41, "GET_PERSONAL_ACCESS_TOKENS", _Empty, users.TokenList, since=_B1),
    Command(42, "CREATE_PERSONAL_ACCESS_TOKEN", users.CreateToken, users.RawToken, 146, since=_B1),
    Command(43, "DELETE_PERSONAL_ACCESS_TOKEN", users.TokenRequest, operation=147, since=_B1),
    Command(44, "LOGIN_WITH_PERSONAL_ACCESS_TOKEN", users.LoginWithToken, users.LoginReply, since=_B1, until=_C3),
    Command(100, "POLL_MESSAGES", batches.PollMessages, batches.PolledMessages),
    Command(101, "SEND_MESSAGES", batches.SendMessages, batches.SendReply, 160),
    Command(102, "FLUSH_UNSAVED_BUFFER", batches.FlushBuffer, since=_B2),
    Command(120, "GET_CONSUMER_OFFSET", offsets.GetOffset, offsets.OffsetInfo),
    Command(121, "STORE_CONSUMER_OFFSET", offsets.StoreOffset, operation=161),
    Command(122, "DELETE_CONSUMER_OFFSET", offsets.DeleteOffset, operation=162, since=_B1),
    Command(200, "GET_STREAM", streams.StreamRequest, streams.StreamDetails),
    Command(201, "GET_STREAMS", _Empty, streams.StreamList),
    Command(202, "CREATE_STREAM", streams.CreateStream, streams.StreamReply, 128),
    Command(203, "DELETE_STREAM", streams.StreamRequest, operation=130),
    Command(204, "UPDATE_STREAM", streams.UpdateStream, operation=129),
    Command(205, "PURGE_STREAM", streams.StreamRequest, operation=131, since=_B1),
    Command(300, "GET_TOPIC", topics.TopicRequest, topics.TopicDetails),
    Command(301, "GET_TOPICS", topics.StreamTopics, topics.TopicList),
    Command(302, "CREATE_TOPIC", topics.CreateTopic, topics.TopicReply, 132),
    Command(303, "DELETE_TOPIC", topics.TopicRequest, operation=134),
    Command(304, "UPDATE_TOPIC", topics.UpdateTopic, operation=133),
    Command(305, "PURGE_TOPIC", topics.TopicRequest, operation=135, since=_B1),
    Command(402, "CREATE_PARTITIONS", topics.PartitionsRequest, operation=136),
    Command(403, "DELETE_PARTITIONS", topics.PartitionsRequest, operation=137),
    Command(503, "DELETE_SEGMENTS", topics.DeleteSegments, operation=138, since=_C3),
    Command(600, "GET_CONSUMER_GROUP", groups.GroupRequest, groups.GroupDetails),
    Command(601, "GET_CONSUMER_GROUPS", topics.TopicRequest, groups.GroupList),
    Command(602, "CREATE_CONSUMER_GROUP", groups.CreateGroup, groups.GroupReply, 139),
    Command(603, "DELETE_CONSUMER_GROUP", groups.GroupRequest, operation=140),
    Command(604, "JOIN_CONSUMER_GROUP", groups.GroupRequest, operation=148),
    Command(605, "LEAVE_CONSUMER_GROUP", groups.GroupRequest, operation=149),
    Command(606, "SYNC_CONSUMER_GROUP", groups.GroupRequest, groups.GroupAssignment, since=_D0),
)

BY_CODE: Final[Mapping[int, Command]] = {command.code: command for command in COMMANDS}
BY_OPERATION: Final[Mapping[int, Command]] = {
    command.operation: command for command in COMMANDS if command.operation != NON_REPLICATED
}
