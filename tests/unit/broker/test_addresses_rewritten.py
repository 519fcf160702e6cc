"""Byte addresses where the cleaner writes frames anew: nobody is led into the middle of a message."""

from millstream.model.pending import Pending
from millstream.wire.kafka07.messages import check_crc, message_at, payloads
from tests.support.batches import read_all
from tests.unit.broker.cleaning.keyed_topic import READERS, keyed_batch, records_of
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka07.conversation import Conversation

VALUE = b"x" * 1000


def compacted(client: Conversation) -> None:
    """Let a topic have keys that have one record, and keys that have two, in a segment that can be cleaned."""
    client.create("orders")
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "10000"}
    client.wait(client.broker.topics.set_configs(client.topic(), configs))
    client.broker.cleaner.readers.update(READERS)
    for n, key in enumerate([*range(300), *range(0, 300, 3)]):
        pair = b"%d" % key, b"%05d" % n + VALUE[n % 97 :]
        append(client.partition(), keyed_batch([pair], client.runtime.now_ms()))
    client.pass_ms(11_000)


def test_whoever_asks_first_while_a_segment_is_replaced_counts_what_stays() -> None:
    client = Conversation()
    compacted(client)
    client.runtime.hold("upkeep")
    client.pass_ms(40_000)
    assert client.runtime.queued("upkeep"), "a segment is about to be replaced"
    client.end()
    client.runtime.release("upkeep")
    client.pass_ms(15_000)
    assert client.broker.cleaner.figures.after_bytes
    address, found = client.first(), set[bytes | None]()
    while data := client.fetch(address, 20_000)[1]:
        message = message_at(memoryview(data), 0)
        assert message is not None
        check_crc(memoryview(data), message)
        found |= {bytes(one) for one in payloads(memoryview(data)[: message.stop])}
        address += message.stop
    assert found == {one.value for one in records_of(read_all(client.partition().log))}


def test_segments_are_replaced_once_their_addresses_are_known() -> None:
    client = Conversation()
    compacted(client)
    addresses, partition = client.service.shared.addresses, client.partition()
    following = addresses.index(partition)
    assert isinstance(following, Pending), "there is more than is walked over at once"
    noted = addresses.replacing(partition, 0, 400)
    assert not noted.done
    behind = noted.then(lambda _: addresses.index(partition))
    assert not isinstance(client.wait(behind), Pending), "nothing of it is left to be walked over"
