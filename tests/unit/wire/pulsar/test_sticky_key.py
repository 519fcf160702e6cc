import base64

import pytest

from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.sticky_key import partition_key, sticky_key


@pytest.mark.parametrize(
    ("metadata", "partition", "sticky"),
    [
        (MessageMetadata(), None, None),
        (MessageMetadata(partition_key=b"key"), b"key", b"key"),
        (MessageMetadata(partition_key=b""), b"", b""),
        (MessageMetadata(partition_key=b"key", ordering_key=b"order"), b"key", b"order"),
        (MessageMetadata(ordering_key=b"order"), None, b"order"),
        (
            MessageMetadata(partition_key=base64.b64encode(b"\xff\0"), partition_key_b64_encoded=True),
            b"\xff\0",
            b"\xff\0",
        ),
        (MessageMetadata(partition_key=b"no base64", partition_key_b64_encoded=True), b"no base64", b"no base64"),
        (MessageMetadata(partition_key=b"", null_partition_key=True), None, None),
    ],
)
def test_keys(metadata: MessageMetadata, partition: bytes | None, sticky: bytes | None) -> None:
    assert (partition_key(metadata), sticky_key(metadata)) == (partition, sticky)
