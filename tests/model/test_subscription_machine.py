"""Subscriptions of every kind against a small reference, under anything that hypothesis thinks of.

Each receiver checks what it is given at the moment it is given it: nothing that is acknowledged, nothing that
somebody else holds, the right redelivery count, and for Key_Shared the order of each key. At the end all that was not
acknowledged has to arrive.
"""

import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millstream.broker.subscriptions import CloseReason, Consumer, Delivery, SubscriptionKind, SubscriptionSettings
from millstream.broker.subscriptions.single import SingleDispatcher
from tests.unit.broker.subscriptions.desk import Desk, NotedReceiver

COUNT_MAX = 4
SELDOM = 9
"""What sends all consumers away happens once in so many times, or nothing else would get far."""
KEYS = [b"red", b"green", b"blue", b"black"]
LIMITS = SubscriptionSettings(
    unacknowledged_per_consumer_max=12,
    unacknowledged_max=20,
    entries_per_consumer=2,
    turn_entries_max=5,
    look_ahead_per_consumer=3,
    look_ahead_max=7,
)


class Frame:
    """What the reference knows of a frame."""

    def __init__(self, base: int, count: int, key: bytes, due_ms: int) -> None:
        self.base = base
        self.count = count
        self.key = key
        self.due_ms = due_ms
        self.deliveries = 0
        self.holder: CheckingReceiver | None = None


class CheckingReceiver(NotedReceiver):
    """A connection that checks every delivery against the reference."""

    def __init__(self, machine: "SubscriptionMachine") -> None:
        super().__init__()
        self.machine = machine
        self.consumer: Consumer

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None:
        assert not self.reasons
        assert deliveries
        assert len(deliveries) <= LIMITS.turn_entries_max
        for delivery in deliveries:
            self.machine.check_delivery(self, delivery)


class SubscriptionMachine(RuleBasedStateMachine):
    """Everything that consumers do, everything that happens to a server."""

    kind: SubscriptionKind

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.desk = Desk(str(Path(self.directory) / "metadata.db"), settings=LIMITS)
        self.frames: dict[int, Frame] = {}
        self.acknowledged: set[int] = set()
        self.answered: set[int] = set()
        self.receivers: list[CheckingReceiver] = []
        self.last_base = -1

    @property
    def pooled(self) -> bool:
        return self.kind in (SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED)

    @initialize()
    def begin(self) -> None:
        for name in "ab" if self.kind is not SubscriptionKind.EXCLUSIVE else "a":
            self._connect(name, 0)

    # Checks

    def left(self, frame: Frame) -> int:
        """The records of a frame that are not acknowledged, as bits."""
        return sum(1 << n for n in range(frame.count) if frame.base + n not in self.acknowledged)

    def check_delivery(self, receiver: CheckingReceiver, delivery: Delivery) -> None:
        frame = self.frames[delivery.header.base_offset]
        left = self.left(frame)
        assert left, "nothing that is acknowledged comes again"
        wanted = (1 << frame.count) - 1 if delivery.wanted is None else delivery.wanted
        assert wanted == left
        assert receiver.consumer.active
        if not self.pooled:
            assert delivery.redelivery_count == 0
            before = [f for f in self.frames.values() if f.base < frame.base and self.left(f) and not f.holder]
            assert not before, "in the order of the log"
        else:
            assert frame.holder is None, "somebody else has it"
            assert delivery.redelivery_count == frame.deliveries
            assert frame.due_ms <= self.desk.runtime.now_ms(), "it is too early"
        if self.kind is SubscriptionKind.KEY_SHARED:
            for other in self.frames.values():
                if other.key != frame.key or other is frame or not self.left(other):
                    continue
                assert other.holder in (None, receiver), "the key is unacknowledged elsewhere"
                if other.base < frame.base and other.due_ms <= 0:
                    assert other.holder is receiver, "a key's records come in order"
        frame.holder = receiver
        if self.pooled:
            frame.deliveries += 1

    @invariant()
    def permits_are_never_overdrawn(self) -> None:
        for receiver in self.receivers:
            assert receiver.consumer.permits > -COUNT_MAX

    @invariant()
    def figures_agree(self) -> None:
        subscription = self.desk.subscription()
        left = set(range(self.desk.log.end_offset)) - self.acknowledged
        assert subscription.position == min(left, default=self.desk.log.end_offset)
        stats = subscription.stats()
        assert stats.backlog == len(left)
        if self.pooled:
            for receiver in self.receivers:
                held = sum(self.left(f).bit_count() for f in self.frames.values() if f.holder is receiver)
                assert receiver.consumer.unacknowledged == held
            assert stats.unacknowledged == sum(one.unacknowledged for one in stats.consumers)

    @invariant()
    def nothing_rests_that_could_be_delivered(self) -> None:
        if self.kind is SubscriptionKind.KEY_SHARED or self.desk.subscription().stats().blocked:
            return
        self._run()
        ready = [one for one in self.receivers if one.consumer.permits > 0 and not one.consumer.blocked]
        if self.kind is SubscriptionKind.FAILOVER:
            dispatcher = self.desk.subscription()._dispatcher
            assert isinstance(dispatcher, SingleDispatcher | None)
            waits = dispatcher is not None and dispatcher._taking_over is not None
            ready = [one for one in ready if one.consumer.active and not waits]
        if ready:
            now_ms = self.desk.runtime.now_ms()
            for frame in self.frames.values():
                assert not self.left(frame) or frame.holder is not None or frame.due_ms > now_ms

    # What producers and consumers do

    @rule(counts=st.lists(st.integers(1, COUNT_MAX), min_size=1, max_size=6), data=st.data())
    def append_some(self, counts: list[int], data: st.DataObject) -> None:
        self.append(counts, data)

    def append(self, counts: list[int], data: st.DataObject) -> None:
        """Append frames of so many records."""
        for count in counts:
            base, key = self.desk.log.end_offset, data.draw(st.sampled_from(KEYS))
            delay_ms = data.draw(st.sampled_from([0, 0, 0, 30, 500])) if self.pooled else 0
            due_ms = self.desk.runtime.now_ms() + delay_ms if delay_ms else 0
            self.desk.inspector.keys[base] = key
            self.desk.inspector.times[base] = due_ms
            self.frames[base] = Frame(base, count, key, due_ms)
            self.desk.append(count)
        self.desk.run()

    @precondition(lambda self: self.kind is not SubscriptionKind.EXCLUSIVE or not self.receivers)
    @rule(name=st.sampled_from("abc"), priority=st.integers(0, 1))
    def connect(self, name: str, priority: int) -> None:
        if len(self.receivers) < 4:
            self._connect(name, priority)

    def _connect(self, name: str, priority: int) -> CheckingReceiver:
        receiver = CheckingReceiver(self)
        receiver.consumer, noted = self.desk.subscribe(self.kind, name, priority=priority)
        receiver.consumer.receiver = receiver
        assert not noted.turns
        self.receivers.append(receiver)
        return receiver

    @precondition(lambda self: self.receivers)
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        receiver = data.draw(st.sampled_from(self.receivers))
        self._let_go(receiver)
        self.receivers.remove(receiver)
        receiver.consumer.close()
        self.desk.run()

    def _let_go(self, receiver: CheckingReceiver) -> None:
        for frame in self.frames.values():
            if frame.holder is receiver:
                frame.holder = None

    @precondition(lambda self: self.receivers)
    @rule(data=st.data(), permits=st.integers(1, 9))
    def flow(self, data: st.DataObject, permits: int) -> None:
        data.draw(st.sampled_from(self.receivers)).consumer.flow(permits)
        self._run()

    @precondition(lambda self: self.receivers)
    @rule(counts=st.lists(st.integers(1, COUNT_MAX), min_size=1, max_size=6), data=st.data())
    def append_for_everybody(self, counts: list[int], data: st.DataObject) -> None:
        for receiver in self.receivers:
            receiver.consumer.flow(6)
        self.append(counts, data)

    def _run(self) -> None:
        """Let things run; a single consumer may get again what another one was given before it took over."""
        if not self.pooled:
            for frame in self.frames.values():
                if frame.holder is not None and not frame.holder.consumer.active:
                    frame.holder = None
        self.desk.run()

    @precondition(lambda self: self.receivers and self.frames)
    @rule(data=st.data(), bits=st.integers(0, 2**COUNT_MAX - 1), whole=st.booleans())
    def acknowledge(self, data: st.DataObject, bits: int, whole: bool) -> None:
        receiver = data.draw(st.sampled_from(self.receivers))
        frame = self.frames[data.draw(st.sampled_from(sorted(self.frames)))]
        wanted = None if whole else bits
        for n in range(frame.count):
            if wanted is None or not wanted >> n & 1:
                self.acknowledged.add(frame.base + n)
        receiver.consumer.acknowledge([(frame.base, wanted)])
        self._run()

    @precondition(lambda self: self.receivers and self.frames)
    @rule(data=st.data(), bits=st.integers(0, 2**COUNT_MAX - 1))
    def acknowledge_cumulative(self, data: st.DataObject, bits: int) -> None:
        receiver = data.draw(st.sampled_from(self.receivers))
        frame = self.frames[data.draw(st.sampled_from(sorted(self.frames)))]
        receiver.consumer.acknowledge_cumulative(frame.base, bits)
        if not self.pooled:
            done = min((bits & -bits).bit_length() - 1, frame.count) if bits else frame.count
            self.acknowledged |= set(range(frame.base + done))
        self._run()

    @precondition(lambda self: self.receivers and self.frames)
    @rule(data=st.data(), everything=st.booleans())
    def redeliver(self, data: st.DataObject, everything: bool) -> None:
        receiver = data.draw(st.sampled_from(self.receivers))
        bases = None if everything else data.draw(st.lists(st.sampled_from(sorted(self.frames)), max_size=4))
        for frame in self.frames.values():
            again = not self.pooled or bases is None or frame.base in bases
            if frame.holder is receiver and again:
                frame.holder = None
        receiver.consumer.redeliver(bases)
        self._run()

    @rule(milliseconds=st.sampled_from([1, 40, 1200]))
    def let_time_pass(self, milliseconds: int) -> None:
        self._run()
        self.desk.pass_ms(milliseconds)

    @rule()
    def await_receipt(self) -> None:
        receipt = self.desk.subscription().persist()
        if receipt is not None:
            self.desk.wait(receipt)
        self.answered = set(self.acknowledged)

    @precondition(lambda self: self.frames)
    @rule(data=st.data(), chance=st.integers(0, SELDOM))
    def seek(self, data: st.DataObject, chance: int) -> None:
        if chance:
            return
        offset = data.draw(st.integers(0, self.desk.log.end_offset))
        self.desk.wait(self.desk.subscription().seek(offset))
        assert all(receiver.reasons == [CloseReason.SEEK] for receiver in self.receivers)
        self.acknowledged = set(range(offset))
        self.answered = set(self.acknowledged)
        self._forget_consumers()

    def _forget_consumers(self) -> None:
        self.receivers.clear()
        for frame in self.frames.values():
            frame.holder, frame.deliveries = None, 0

    @rule(chance=st.integers(0, SELDOM))
    def kill(self, chance: int) -> None:
        if chance:
            return
        self.desk.kill()
        cursor = self.desk.subscription().cursor
        found = set(range(cursor.position)) | {n for first, end in cursor.acknowledged for n in range(first, end)}
        assert found <= self.acknowledged, "nothing is passed over"
        assert self.answered <= found, "nothing that was answered comes back"
        self.acknowledged = found
        self._forget_consumers()

    def teardown(self) -> None:
        for receiver in list(self.receivers):
            self._let_go(receiver)
            receiver.consumer.close()
        self.receivers.clear()
        last = self._connect("last", 0)
        for _ in range(200):
            last.consumer.flow(100)
            self.desk.pass_ms(600)
            held = [(frame.base, None) for frame in self.frames.values() if frame.holder is last]
            last.consumer.acknowledge(held)
            for base, _ in held:
                frame = self.frames[base]
                self.acknowledged |= set(range(base, base + frame.count))
                frame.holder = None
            if self.desk.subscription().position == self.desk.log.end_offset:
                break
        assert self.desk.subscription().position == self.desk.log.end_offset, "all of it arrives"
        self.figures_agree()
        self.desk.broker.kill()
        shutil.rmtree(self.directory)


class ExclusiveMachine(SubscriptionMachine):
    kind = SubscriptionKind.EXCLUSIVE


class FailoverMachine(SubscriptionMachine):
    kind = SubscriptionKind.FAILOVER


class SharedMachine(SubscriptionMachine):
    kind = SubscriptionKind.SHARED


class KeySharedMachine(SubscriptionMachine):
    kind = SubscriptionKind.KEY_SHARED


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("millstream")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


_SETTINGS = settings(
    max_examples=100,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestExclusive = ExclusiveMachine.TestCase
TestFailover = FailoverMachine.TestCase
TestShared = SharedMachine.TestCase
TestKeyShared = KeySharedMachine.TestCase
for _case in (TestExclusive, TestFailover, TestShared, TestKeyShared):
    _case.settings = _SETTINGS
del _case
