"""Topics and partitions as answers describe them, whoever made them."""

from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.topic_info import partition_info, topic_info
from millstream.sessions.iggy.topic_options import NO_BOUND
from millstream.wire.iggy.dialects import Dialect
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.iggy.conversation import IggyBroker


def test_what_other_protocols_made() -> None:
    server = IggyBroker()
    topic = server.create("orders", 2, retention__ms="-1", retention__bytes="5000")
    append(topic.partitions[1], batch(b"a value"))
    client = server.connect(Dialect.D)
    shared = server.service.shared
    (connected,) = shared.clients.values()
    call = Call(shared, connected, client.dialect, memoryview(b""))
    told = topic_info(call, topic)
    assert (told.name, told.partitions_count, told.messages_count) == ("orders", 2, 1)
    assert (told.expiry_us, told.expiry_s, told.max_size_bytes) == (NO_BOUND, 0, 10_000)
    assert told.size_bytes == sum(partition.log.size_bytes for partition in topic.partitions)
    assert told.options == []
    empty, full = (partition_info(topic, partition) for partition in topic.partitions)
    assert (empty.id, empty.current_offset, empty.messages_count) == (0, 0, 0)
    assert (full.id, full.current_offset, full.messages_count) == (1, 0, 1)
    assert full.size_bytes == topic.partitions[1].log.size_bytes
