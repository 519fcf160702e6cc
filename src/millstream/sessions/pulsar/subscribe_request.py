"""What a SUBSCRIBE command asks for, in the broker's terms."""

from typing import Final

from millstream.broker.partition import Partition
from millstream.broker.subscriptions import FrameSource, KeySharedPolicy, StartAt, Subscribing, SubscriptionKind
from millstream.model.frame import read_frame_header
from millstream.sessions.pulsar.delivery import MessageEncoder
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.inspector import EntryInspector
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import ledger_id_of, place_of
from millstream.sessions.pulsar.names import Place
from millstream.sessions.pulsar.translations import Where
from millstream.wire.pulsar.pulsar_pb2 import CommandSubscribe, KeySharedMeta, KeySharedMode

__all__ = ["KINDS", "check_subscribe", "encoder_for", "key_shared_policy", "message_encoder", "subscribing"]

KINDS: Final = {
    CommandSubscribe.Exclusive: SubscriptionKind.EXCLUSIVE,
    CommandSubscribe.Shared: SubscriptionKind.SHARED,
    CommandSubscribe.Failover: SubscriptionKind.FAILOVER,
    CommandSubscribe.Key_Shared: SubscriptionKind.KEY_SHARED,
}
"""Who gets what, by the protocol's name for it."""
_NAME_BYTES_MAX: Final = 1024
"""Bytes of the name of a subscription or a consumer: more than any user wants, and little enough to keep for each."""
_KEY_RANGES_MAX: Final = 1024
"""Ranges of keys that one consumer may ask for."""
_BATCHES_FROM: Final = 4
"""The first protocol version whose clients know batches."""
_CHECKSUMS_FROM: Final = 11
"""The first protocol version whose clients all make sense of checksums."""
_BROKER_METADATA_FROM: Final = 18
"""The first protocol version that has broker entry metadata in MESSAGE."""
_GIVEN_NAME_BYTES: Final = 5


def check_subscribe(command: CommandSubscribe) -> None:
    """Refuse what no subscription can be. Raises NotAllowed."""
    if not command.subscription:
        raise NotAllowed("a subscription has a name")
    for name in (command.subscription, command.consumer_name):
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise NotAllowed(f"the name of a subscription or a consumer has at most {_NAME_BYTES_MAX} bytes")
    if command.read_compacted and command.subType not in (CommandSubscribe.Exclusive, CommandSubscribe.Failover):
        raise NotAllowed("what compaction has left is read by Exclusive and Failover subscriptions only")
    if command.priority_level < 0:
        raise NotAllowed("a priority is not negative")
    if len(command.keySharedMeta.hashRanges) > _KEY_RANGES_MAX:
        raise NotAllowed(f"a consumer has at most {_KEY_RANGES_MAX} ranges of keys")


def subscribing(link: Link, command: CommandSubscribe, place: Place) -> Subscribing:
    """The request to the broker."""
    broker, shared = link.broker, link.shared
    topic, partition = place.topic, place.found()
    namespace = broker.namespaces.find(topic.name.tenant, topic.name.namespace)
    creates = namespace.policies.auto_subscription_creation if namespace is not None else None
    start: int | StartAt = StartAt.LATEST
    if command.initialPosition == CommandSubscribe.Earliest:
        start = StartAt.EARLIEST
    if command.start_message_rollback_duration_sec:
        since_ms = broker.runtime.now_ms() - command.start_message_rollback_duration_sec * 1000
        start = _offset_for(partition, since_ms)
    elif not command.durable and command.HasField("start_message_id"):
        start = place_of(command.start_message_id, ledger_id_of(topic), partition)
        if start == partition.log.start_offset:
            start = StartAt.EARLIEST  # of what compaction has left, too
    return Subscribing(
        kind=KINDS[command.subType],
        consumer_name=command.consumer_name or broker.runtime.random_bytes(_GIVEN_NAME_BYTES).hex(),
        inspector=EntryInspector((topic.id, place.partition), shared.translations),
        durable=command.durable,
        start=start,
        may_create=creates is not False,
        priority=command.priority_level,
        epoch=command.consumer_epoch,
        key_shared=key_shared_policy(command.keySharedMeta),
        source=broker.compaction.view(topic, place.partition) if command.read_compacted else None,
    )


def _offset_for(partition: Partition, timestamp_ms: int) -> int:
    """The offset of the first frame with a record as late as a time, or the end."""
    frame = partition.log.frame_for_time(timestamp_ms)
    return partition.log.end_offset if frame is None else read_frame_header(frame).base_offset


def key_shared_policy(meta: KeySharedMeta) -> KeySharedPolicy:
    """How a consumer wants keys to be shared out."""
    ranges: tuple[tuple[int, int], ...] | None = None
    if meta.keySharedMode == KeySharedMode.STICKY:
        ranges = tuple((one.start, one.end) for one in meta.hashRanges)
    return KeySharedPolicy(sticky_ranges=ranges, allow_out_of_order=meta.allowOutOfOrderDelivery)


def encoder_for(link: Link, command: CommandSubscribe, place: Place, request: Subscribing) -> MessageEncoder:
    """What makes MESSAGE frames for the consumer."""
    where = place.topic.id, place.partition
    return message_encoder(link, command, ledger_id_of(place.topic), place.shown, where, request.source)


def message_encoder(
    link: Link, command: CommandSubscribe, ledger_id: int, shown: int, where: Where, source: FrameSource | None
) -> MessageEncoder:
    """The same, of what is not a partition with a log, too; see `MessageEncoder`."""
    version = link.protocol_version
    return MessageEncoder(
        consumer_id=command.consumer_id,
        ledger_id=ledger_id,
        shown=shown,
        where=where,
        translations=link.shared.translations,
        source=source,
        strips_checksum=version < _CHECKSUMS_FROM,
        splits_batches=version < _BATCHES_FROM,
        broker_metadata=(
            link.shared.broker_entry_metadata
            and version >= _BROKER_METADATA_FROM
            and link.features.supports_broker_entry_metadata
        ),
        tells_epoch=command.HasField("consumer_epoch"),
        keeps_ids=not command.durable,
    )
