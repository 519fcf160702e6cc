"""Members of a consumer group as a test lets them act: a group on virtual time, and one call for each request."""

from collections.abc import Callable
from typing import TypedDict, Unpack

from millstream.broker.group import Assignment, Group, GroupState, Joined, Joining, Protocol
from millstream.model.pending import Pending
from millstream.model.runtime import Timer
from tests.support.simulated_runtime import SimulatedRuntime

__all__ = ["REBALANCE_MS", "SESSION_MS", "CountingRuntime", "Details", "Party", "joining"]

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Details(TypedDict, total=False):
    """What a test may say of a join; what it does not is as for every other member."""

    protocols: tuple[str, ...]
    metadata: bytes
    protocol_type: str
    session_ms: int
    rebalance_ms: int
    id_required: bool
    may_skip: bool


def joining(member_id: str = "", instance_id: str | None = None, **details: Unpack[Details]) -> Joining:
    """A request to join."""
    metadata = details.get("metadata", b"topics")
    return Joining(
        member_id=member_id,
        instance_id=instance_id,
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=details.get("session_ms", SESSION_MS),
        rebalance_timeout_ms=details.get("rebalance_ms", REBALANCE_MS),
        protocol_type=details.get("protocol_type", "consumer"),
        protocols=tuple(Protocol(name, metadata) for name in details.get("protocols", ("range",))),
        id_required=details.get("id_required", False),
        may_skip_assignment=details.get("may_skip", False),
    )


class _CountedTimer:
    def __init__(self, timers: "set[_CountedTimer]") -> None:
        self.timers = timers
        self.timer: Timer | None = None
        timers.add(self)

    def cancel(self) -> None:
        self.timers.discard(self)
        if self.timer is not None:
            self.timer.cancel()


class CountingRuntime(SimulatedRuntime):
    """A simulated runtime that knows which timers are still to come."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.timers: set[_CountedTimer] = set()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:  # type: ignore[override]  # a wrapper
        """Call when time has passed, and count the timer until then."""
        counted = _CountedTimer(self.timers)

        def run() -> None:
            self.timers.discard(counted)
            callback()

        counted.timer = super().call_later(delay_s, run)
        return counted


class Party:
    """A group and those in it.

    Args:
        delay_ms: how long the first rebalance waits for more members.
        size_max: how many members there may be.
    """

    def __init__(self, delay_ms: int = 0, size_max: int = 1000) -> None:
        self.runtime = CountingRuntime()
        self.group = Group("group", self.runtime, delay_ms, size_max)

    def join(
        self, member_id: str = "", instance_id: str | None = None, **details: Unpack[Details]
    ) -> Pending[Joined]:
        """Ask to join."""
        return self.group.join(joining(member_id, instance_id, **details))

    def sync(self, joined: Joined, instance_id: str | None = None) -> Pending[Assignment]:
        """Sync as the member that an answer made; as the leader, assign to everybody its own id."""
        everybody = {member_id: member_id.encode() for member_id, _, _ in joined.members}
        return self.group.sync(joined.member_id, instance_id, joined.generation, None, None, everybody)

    def beat(self, joined: Joined, instance_id: str | None = None) -> None:
        """Send a heartbeat."""
        self.group.heartbeat(joined.member_id, instance_id, joined.generation)

    def state(self) -> GroupState:
        """Where the group stands."""
        return self.group.state

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass."""
        self.runtime.advance(milliseconds / 1000)

    def stable(self, *instance_ids: str | None, **details: Unpack[Details]) -> list[Joined]:
        """Bring members together: one for each instance id, None for a dynamic one. The first leads."""
        first = self.join("", instance_ids[0], **details).result()
        self.sync(first, instance_ids[0])
        joined = [first]
        if len(instance_ids) > 1:
            others = [self.join("", instance_id, **details) for instance_id in instance_ids[1:]]
            joined = [answer.result() for answer in (self.join(first.member_id, instance_ids[0], **details), *others)]
            answers = [self.sync(*one) for one in zip(joined, instance_ids, strict=True)]
            assert [answer.result().content for answer in answers] == [one.member_id.encode() for one in joined]
        return joined
