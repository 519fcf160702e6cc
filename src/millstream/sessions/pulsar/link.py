"""What handlers of Pulsar commands work on: one connection, and what all of them share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from millstream.broker.broker import Broker
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.model.runtime import Timer
from millstream.sessions.pulsar.authentication import Identity, Tokens
from millstream.sessions.pulsar.error_table import Refusal, code_of
from millstream.sessions.pulsar.receipts import Receipts
from millstream.sessions.pulsar.remembered import Memories
from millstream.sessions.pulsar.topic_watch import TopicWatch, Watcher
from millstream.sessions.pulsar.translations import Translations
from millstream.sessions.session import Buffer, Peer
from millstream.wire.pulsar.frames import encode_command
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandError,
    CommandPing,
    CommandProducer,
    FeatureFlags,
)

__all__ = ["KEEP_ALIVE_MS", "PINGS_FROM", "Attached", "Link", "PulsarShared"]

_log = logging.getLogger(__name__)
KEEP_ALIVE_MS: Final = 30_000
"""Silence after which a peer is asked whether it is there, and then given up: the time that Apache Pulsar has."""
PINGS_FROM: Final = 1
"""The first protocol version whose clients know PING."""
_CLOSES_FROM: Final = 5
"""The first in which a client knows what it means that the broker closes a producer or a consumer."""
_PROBE_S: Final = 5.0
"""Seconds for the holder of a name to show that it is there, when another connection wants the name; as there."""
T = TypeVar("T")


class Attached(Protocol):
    """A producer or a consumer of one connection."""

    def resume(self) -> None:
        """The peer has room to be sent more again."""

    def close(self) -> None:
        """The connection is gone: let go of everything."""


@dataclass(slots=True)
class PulsarShared:
    """What all Pulsar connections share.

    Args:
        broker: the broker.
        translations: of what other protocols wrote.
        memories: what is remembered of subscriptions.
        broker_entry_metadata: whether consumers are told when the broker took an entry, and its index.
        tokens: checks who clients are; None lets everyone in.
    """

    broker: Broker
    memories: Memories = field(default_factory=Memories)
    broker_entry_metadata: bool = False
    tokens: Tokens | None = None
    translations: Translations = field(init=False)
    topic_watch: TopicWatch = field(init=False)

    def __post_init__(self) -> None:
        self.translations = Translations(self.broker.translated_frames)
        self.topic_watch = TopicWatch(self.broker.topics)


@dataclass(slots=True, eq=False)
class Link:
    """One connection.

    Args:
        shared: what all connections share.
        peer: its socket.
        protocol_version: what was agreed on; -1 before CONNECT.
        client_version: what the client says it is.
        features: what the client says it can do.
        identity: who it has shown to be; None where nobody asks.
        challenged: whether it was asked for a new token and has not shown one yet.
        producers, consumers: by the numbers that the client gave them.
        connecting: the last request for each producer that is on its way to a topic, by the same numbers.
        watchers: what looks for topics that come and go, by the client's numbers.
        volatile_in_flight: messages to topics that keep nothing whose receipts are not sent yet.
        closed: whether the connection is gone.
    """

    shared: PulsarShared
    peer: Peer
    protocol_version: int = -1
    client_version: str = ""
    features: FeatureFlags = field(default_factory=FeatureFlags)
    identity: Identity | None = None
    challenged: bool = False
    producers: dict[int, Attached] = field(default_factory=dict)
    connecting: dict[int, CommandProducer] = field(default_factory=dict)
    consumers: dict[int, Attached] = field(default_factory=dict)
    watchers: dict[int, Watcher] = field(default_factory=dict)
    volatile_in_flight: int = 0
    closed: bool = False
    receipts: Receipts = field(init=False)
    _probes: list[Pending[bool]] = field(default_factory=list)
    _probe_timer: Timer | None = None
    _evicted: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.receipts = Receipts(self)

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.shared.broker

    def send(self, message: Message) -> None:
        """Send a command without an entry, at once."""
        self.write([encode_command(message)])

    def write(self, buffers: list[Buffer]) -> None:
        """Write frames that are encoded already, at once."""
        if not self.closed:
            self.peer.send(buffers)

    def refuse(self, request_id: int, error: Refusal) -> None:
        """Answer a request with an error."""
        self.send(CommandError(request_id=request_id, error=code_of(error), message=str(error)))

    def answer(self, request_id: int, pending: Pending[T], response: Callable[[T], Message | None]) -> None:
        """Answer a request once something is settled: with a message made of its value, or with its error.

        Args:
            response: None answers nothing. It may raise MillstreamError to refuse after all.
        """

        def tell(message: Message | None) -> None:
            if message is not None:
                self.send(message)

        def refuse(error: MillstreamError) -> None:
            self.refuse(request_id, error)

        pending.then(response).settle(tell, refuse).when_done(self._check)

    def tell_closed(self, message: CommandCloseProducer | CommandCloseConsumer) -> bytes:
        """The frame that tells the client that the broker has parted from a producer or a consumer.

        Empty for a client that is too old to know of this: it loses its connection, once that is its turn.
        """
        if self.protocol_version >= _CLOSES_FROM:
            return encode_command(message)

        def end() -> None:
            if not self.closed:
                self.peer.end("it is too old to be told of what is closed")

        self.broker.runtime.call_soon(end)
        return b""

    def probe(self) -> Pending[bool]:
        """Find out whether the peer is there: any frame of it says so. One that is silent loses its connection.

        A client that does not know PING counts as there, as long as its connection is.
        """
        answer: Pending[bool] = Pending()
        if self.closed or self.protocol_version < PINGS_FROM:
            answer.resolve(not self.closed)
            return answer
        self._probes.append(answer)
        if len(self._probes) == 1:
            self.send(CommandPing())
            self._probe_timer = self.broker.runtime.call_later(_PROBE_S, self._give_up)
        return answer

    def heard(self) -> None:
        """A frame has come: the peer is there."""
        if self._probes:
            self._end_probes(alive=True)

    def _give_up(self) -> None:
        """End the connection: nothing has come since it was asked."""
        self.peer.end("it did not answer PING")
        self.lost()

    def lost(self) -> None:
        """The peer is gone."""
        self._end_probes(alive=False)

    def _end_probes(self, *, alive: bool) -> None:
        """Tell those who asked. The next to ask waits for an answer of its own, for as long."""
        probes, self._probes = self._probes, []
        if self._probe_timer is not None:
            self._probe_timer.cancel()
            self._probe_timer = None
        for probe in probes:
            probe.resolve(alive)

    def evicted(self, number: int) -> None:
        """Remember that the server has parted from a producer: what its client sent before it knew is passed over."""
        now_ms = self.broker.runtime.monotonic_ms()
        evicted = self._evicted
        evicted.pop(number, None)
        evicted[number] = now_ms
        while (oldest := next(iter(evicted))) != number and now_ms - evicted[oldest] > KEEP_ALIVE_MS:
            del evicted[oldest]

    def was_evicted(self, number: int) -> bool:
        """Whether the server has parted from a producer a moment ago."""
        evicted_ms = self._evicted.get(number)
        return evicted_ms is not None and self.broker.runtime.monotonic_ms() - evicted_ms <= KEEP_ALIVE_MS

    def unwatch(self, watcher_id: int) -> None:
        """Look for topics no more; nothing happens if there is no such watcher."""
        watcher = self.watchers.pop(watcher_id, None)
        if watcher is not None:
            watcher.close()

    def _check(self, done: Pending[None]) -> None:
        """End the connection loudly if answering failed by a fault of ours: its client would wait for ever."""
        try:
            done.result()
        except Exception:  # noqa: BLE001 - see above
            _log.exception("internal error peer=%s: the connection is closed", self.peer.address)
            self.peer.end("an internal error")
