"""Registration in ZooKeeper, for clients of Kafka 0.7 that look brokers up there.

    /brokers/ids/ID            ephemeral, CREATOR:HOST:PORT, where CREATOR is the host and the ms of the registration
    /brokers/topics/TOPIC/ID   ephemeral, the number of partitions as text

What those clients keep there themselves (owners, offsets as byte addresses) is between them and ZooKeeper.

ZooKeeper's client waits for its answers, so it has a thread of its own, which is told what should stand there and
brings it about: at the start, whenever that changes, and in every new session, because the old one took it along.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final

from millstream.broker.errors import InvalidTopicName
from millstream.broker.topics import Topics
from millstream.model.runtime import Runtime, Timer
from millstream.sessions.kafka07.names import check_topic_name
from millstream.sessions.session import Endpoint

if TYPE_CHECKING:
    from kazoo.client import KazooClient

__all__ = ["Registration", "ZooKeeper"]

_log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.setLevel(logging.ERROR)  # what else it has to say is told here, once
_LOOK_S: Final = 1.0
"""Seconds between two looks for topics that came or went."""
_RETRY_S: Final = 2.0
"""Seconds until what ZooKeeper refused is tried again: an earlier session's registration ends by itself."""
_STOP_S: Final = 5.0
"""Seconds that a stop waits for ZooKeeper; its sessions end without us too."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What should stand in ZooKeeper.

    Args:
        broker_id: ours.
        endpoint: where clients reach us.
        topics: the number of partitions by the topics' flat names.
    """

    broker_id: int
    endpoint: Endpoint
    topics: Mapping[str, int]


class ZooKeeper:
    """Keeps this broker registered.

    Args:
        hosts: HOST:PORT of ZooKeeper's servers, comma-separated, with a path behind the last if all stands below it.
        broker_id: ours.
        endpoint: where clients reach us.
        topics: all topics.
        runtime: timers.
    """

    def __init__(self, hosts: str, broker_id: int, endpoint: Endpoint, topics: Topics, runtime: Runtime) -> None:
        self._broker_id = broker_id
        self._endpoint = endpoint
        self._topics = topics
        self._runtime = runtime
        self._told: Registration | None = None
        self._timer: Timer | None = None
        creator = f"{endpoint.host.replace(':', '.')}-{runtime.now_ms()}"
        self._worker = _Worker(hosts, creator)
        self._look()

    def _look(self) -> None:
        self._timer = self._runtime.call_later(_LOOK_S, self._look)
        names = {topic.name.flat: len(topic.partitions) for topic in self._topics if _is_step(topic.name.flat)}
        registration = Registration(self._broker_id, self._endpoint, names)
        if registration != self._told:
            self._told = registration
            self._worker.want(registration)

    async def close(self) -> None:
        """Take everything back."""
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._worker.stop)


def _is_step(name: str) -> bool:
    """Whether a topic's name can be one step of a path; its clients know no others, and ZooKeeper refuses most."""
    try:
        check_topic_name(name)
    except InvalidTopicName:
        return False
    return True


class _Step(Enum):
    """What the thread is to do besides taking on a registration."""

    NEW_SESSION = "new session"
    STOP = "stop"


class _Worker:
    """The thread that speaks to ZooKeeper.

    Args:
        hosts: see `ZooKeeper`.
        creator: names this registration among those of earlier lives.
    """

    def __init__(self, hosts: str, creator: str) -> None:
        # Its client knows such a path too, but does not make one of several steps.
        self._hosts, _, below = hosts.partition("/")
        self._root = f"/{below.strip('/')}".rstrip("/")
        self._creator = creator
        self._values: dict[str, bytes] = {}
        self._queue: SimpleQueue[Registration | _Step] = SimpleQueue()
        self._thread = Thread(target=self._run, name="millstream-zookeeper", daemon=True)
        self._thread.start()

    def want(self, registration: Registration) -> None:
        """Take on what should stand there."""
        self._queue.put(registration)

    def stop(self) -> None:
        """End the session, and with it all that stands there; waits for it, but not for ever."""
        self._queue.put(_Step.STOP)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.protocol.states import KazooState

        client = KazooClient(self._hosts, connection_retry={"max_tries": -1, "max_delay": 10}, logger=_client_log)

        def state_changed(state: str) -> None:
            _log.info("zookeeper hosts=%s state=%s", self._hosts, state)
            if state == KazooState.CONNECTED:
                self._queue.put(_Step.NEW_SESSION)

        client.add_listener(state_changed)
        client.start_async()
        wanted: Registration | None = None
        retry_s: float | None = None
        while (step := self._next(retry_s)) is not _Step.STOP:
            retry_s = None
            if step is _Step.NEW_SESSION:
                self._values.clear()  # what the last one wrote goes with it
            elif step is not None:
                wanted = step
            if wanted is None or not client.connected:
                continue
            try:
                self._bring_about(client, wanted)
            except KazooException as error:
                _log.warning("zookeeper refused hosts=%s reason=%r: tried again", self._hosts, error)
                retry_s = _RETRY_S
        client.stop()
        client.close()

    def _next(self, timeout_s: float | None) -> Registration | _Step | None:
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None

    def _bring_about(self, client: "KazooClient", wanted: Registration) -> None:
        """Write what is missing or different, and remove what should not stand there any more."""
        from kazoo.exceptions import NoNodeError

        place = f"{self._creator}:{wanted.endpoint.host}:{wanted.endpoint.port}"
        values = {f"{self._root}/brokers/ids/{wanted.broker_id}": place.encode()}
        for name, count in wanted.topics.items():
            values[f"{self._root}/brokers/topics/{name}/{wanted.broker_id}"] = str(count).encode()
        for path in [path for path in self._values if path not in values]:
            with contextlib.suppress(NoNodeError):
                client.delete(path)
            del self._values[path]
        for path, value in values.items():
            if self._values.get(path) != value:
                _write(client, path, value)
                self._values[path] = value


def _write(client: "KazooClient", path: str, value: bytes) -> None:
    """Let a value stand at a path for as long as this session lasts.

    Raises:
        KazooException: also while a live session of another broker has taken our id.
    """
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        client.create(path, value, ephemeral=True, makepath=True)
        return
    except NodeExistsError:
        stands = client.exists(path)
    session_id, _ = client.client_id
    if stands is not None and stands.ephemeralOwner == session_id:
        client.set(path, value)
        return
    present, _ = client.get(path)
    if "/brokers/ids/" in path and present.partition(b":")[2] != value.partition(b":")[2]:
        raise NodeExistsError(f"{path} belongs to another broker: {present!r}")
    # Left by an earlier life of this broker, whose session has not ended yet.
    with contextlib.suppress(NoNodeError):
        client.delete(path)
    client.create(path, value, ephemeral=True, makepath=True)
