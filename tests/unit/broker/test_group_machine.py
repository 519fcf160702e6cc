"""A group under members that come, go, keep silent and come back in any order, and what must always hold."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from millstream.broker.errors import GroupError, IllegalGeneration, MemberIdRequired, UnknownMember
from millstream.broker.group import Assignment, Group, GroupState, Joined
from millstream.model.pending import Pending
from tests.unit.broker.members import CountingRuntime, joining

SESSION_MS = 10_000
LONGEST_WAIT_MS = 30 * 60_000
METADATA = (b"one", b"two")


@dataclass(eq=False)
class Client:
    """What a client knows of itself, and the answers that it waits for."""

    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    joined: Joined | None = None
    joins: list[Pending[Joined]] = field(default_factory=list)
    syncs: list[Pending[Assignment]] = field(default_factory=list)

    def learn(self, pending: Pending[Joined]) -> None:
        """Take over what a join has brought; from an error, as real clients do, only whether to forget the id."""
        try:
            self.joined = pending.result()
        except UnknownMember:
            self.member_id, self.joined = "", None
        except GroupError:
            self.joined = None
        else:
            self.member_id, self.generation = self.joined.member_id, self.joined.generation


class GroupMachine(RuleBasedStateMachine):
    """Random lives of up to a few members. What must hold is in the invariants and in `teardown`."""

    clients: Bundle[Client] = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.runtime = CountingRuntime()
        self.group = Group("g", self.runtime, 3000, 6)
        self.everybody: list[Client] = []
        self.leaders: dict[int, set[str]] = {}
        self.generation = 0

    @rule(target=clients, instance_id=st.sampled_from([None, None, "a", "b"]))
    def appear(self, instance_id: str | None) -> Client:
        client = Client(instance_id)
        self.everybody.append(client)
        return client

    @rule(
        client=clients,
        metadata=st.sampled_from(METADATA),
        protocols=st.sampled_from([("p",), ("p", "q"), ("q", "p")]),
        id_required=st.booleans(),
        may_skip=st.booleans(),
        rebalance_ms=st.sampled_from([0, 5000, 60_000]),
    )
    def join(
        self,
        client: Client,
        metadata: bytes,
        protocols: tuple[str, ...],
        id_required: bool,
        may_skip: bool,
        rebalance_ms: int,
    ) -> None:
        request = joining(
            client.member_id,
            client.instance_id,
            metadata=metadata,
            protocols=protocols,
            session_ms=SESSION_MS,
            rebalance_ms=rebalance_ms,
            id_required=id_required,
            may_skip=may_skip,
        )
        try:
            pending = self.group.join(request)
        except MemberIdRequired as given:
            client.member_id = given.member_id
        except UnknownMember:
            client.member_id, client.joined = "", None
        except GroupError:
            pass
        else:
            client.joins.append(pending)
            pending.when_done(client.learn)
            pending.when_done(self.note_leader)

    def note_leader(self, pending: Pending[Joined]) -> None:
        try:
            joined = pending.result()
        except GroupError:
            return
        if joined.leader_id == joined.member_id:
            self.leaders.setdefault(joined.generation, set()).add(joined.member_id)

    @rule(client=clients)
    def sync(self, client: Client) -> None:
        if client.joined is None:
            return
        content = {member_id: member_id.encode() for member_id, _, _ in client.joined.members}
        try:
            client.syncs.append(
                self.group.sync(client.member_id, client.instance_id, client.generation, None, None, content)
            )
        except GroupError:
            return

    @rule(client=clients)
    def beat(self, client: Client) -> None:
        try:
            self.group.heartbeat(client.member_id, client.instance_id, client.generation)
        except GroupError:
            return
        assert client.member_id in self.group.members
        assert client.generation == self.group.generation

    @rule(client=clients, behind=st.integers(1, 3))
    def commit_in_an_old_generation(self, client: Client, behind: int) -> None:
        if client.member_id not in self.group.members:
            return
        try:
            self.group.check_commit(client.member_id, client.instance_id, self.group.generation - behind)
        except GroupError as error:
            assert isinstance(error, IllegalGeneration)  # noqa: PT017 - the other outcome is asserted below
        else:
            raise AssertionError("a member of an old generation may commit")

    @rule(client=consumes(clients))
    def leave(self, client: Client) -> None:
        try:
            self.group.leave(client.member_id, client.instance_id)
        except GroupError:
            return
        assert client.member_id not in self.group.members

    @rule(target=clients, client=consumes(clients))
    def restart(self, client: Client) -> Client:
        twin = Client(client.instance_id)
        self.everybody.append(twin)
        return twin

    @rule(milliseconds=st.sampled_from([1, 2999, 4000, 9999, 30_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.runtime.advance(milliseconds / 1000)

    @invariant()
    def generations_go_up(self) -> None:
        assert self.group.generation >= self.generation
        self.generation = self.group.generation

    @invariant()
    def one_member_leads_and_it_is_a_member(self) -> None:
        group = self.group
        if group.state in {GroupState.STABLE, GroupState.COMPLETING}:
            assert group.leader_id in group.members
            assert group.protocol_name is not None
        if group.state is GroupState.EMPTY:
            assert not group.members

    @invariant()
    def nobody_waits_for_what_has_come(self) -> None:
        group = self.group
        for member in group.members.values():
            assert member.joining is None or group.state is GroupState.PREPARING
            assert member.syncing is None or group.state is GroupState.COMPLETING
            assert member.timer is not None

    @invariant()
    def all_who_know_the_generation_agree_on_it(self) -> None:
        if self.group.state is not GroupState.STABLE:
            return
        for client in self.everybody:
            if client.joined is not None and client.joined.generation == self.group.generation:
                assert client.joined.protocol_name == self.group.protocol_name

    def teardown(self) -> None:
        # A leader that came back under a new id leads the same generation; nobody else ever does.
        for leaders in self.leaders.values():
            assert len(leaders) == 1 or {leader.rpartition("-")[0] for leader in leaders} in ({"a"}, {"b"})
        self.runtime.advance(LONGEST_WAIT_MS / 1000)
        assert (self.group.state, self.group.members) == (GroupState.EMPTY, {})
        assert not self.runtime.timers
        for client in self.everybody:
            assert all(pending.done for pending in client.joins)
            assert all(pending.done for pending in client.syncs)


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(
    max_examples=400,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
