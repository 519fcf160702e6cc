"""The Iggy protocol, as the server sees it: a broker in, a session for each connection out."""

from functools import partial
from typing import Final
from zlib import crc32

from millstream.broker.broker import Broker
from millstream.broker.offsets import Place as OffsetPlace
from millstream.broker.positions import Positions
from millstream.broker.streams import Streams
from millstream.broker.topic_groups import TopicGroups
from millstream.broker.users import Users
from millstream.model.frame import Magic
from millstream.sessions.compaction import NeutralFrameRecords
from millstream.sessions.iggy.call import Client, HostStats, IggyShared
from millstream.sessions.iggy.holders import PROTOCOL, members_of
from millstream.sessions.iggy.session import IggySession
from millstream.sessions.session import Peer, Session

__all__ = ["IggyService"]

_ROOT: Final = "iggy"
"""Name and password of the root user until somebody changes them, as with Iggy's own server in its examples."""


class IggyService:
    """What all Iggy connections share.

    Args:
        broker: the broker that they speak to.
        host: measures the process and its host, for the statistics; None where nobody can.
        deduplication: how many message ids are remembered for each partition, and for how many ms; None for none.
        anonymous: whether clients of the dialect without a login may do everything.
    """

    def __init__(
        self,
        broker: Broker,
        host: HostStats | None = None,
        *,
        deduplication: tuple[int, int] | None = None,
        anonymous: bool = True,
    ) -> None:
        runtime, documents = broker.runtime, broker.documents
        broker.cleaner.readers[Magic.IGGY_BATCH] = NeutralFrameRecords()
        self.shared = IggyShared(
            broker,
            Streams(runtime, documents, broker.namespaces, broker.topics),
            TopicGroups(runtime, documents, broker.topics),
            Users(runtime, documents, root_name=_ROOT, root_password=_ROOT),
            Positions(broker.groups.offsets, runtime.now_ms),
            host,
            deduplication,
            anonymous,
        )

        broker.holders.register(
            PROTOCOL,
            partial(members_of, self.shared),
            self.shared.positions.under_way,
            lambda: ((group.name, bool(len(group.sharing))) for group in self.shared.groups),
        )
        self._topics = broker.topics
        self._topics.watch(self._forget_topics)

    def _forget_topics(self) -> None:
        """Drop what is remembered of topics and partitions that are gone."""
        turns, recent = self.shared.next_partition, self.shared.recent_ids
        for topic_id in [one for one in turns if self._topics.by_id(one) is None]:
            del turns[topic_id]
        for place in [one for one in recent if self._is_gone(one)]:
            del recent[place]
        self.shared.positions.forget(self._is_gone)

    def _is_gone(self, place: OffsetPlace) -> bool:
        topic = self._topics.by_id(place[0])
        return topic is None or place[1] >= len(topic.partitions)

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""
        number = crc32(peer.address.encode())
        client = Client(number, peer.address, peer.endpoint, peer.room_bytes)
        return IggySession(self.shared, client, peer)

    def close(self) -> None:
        """Let no timer run any more."""
        self._topics.unwatch(self._forget_topics)
        self.shared.groups.close()
        self.shared.streams.close()
