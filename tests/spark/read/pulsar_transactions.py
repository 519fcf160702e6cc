"""A Pulsar client that knows transactions, and nothing but what a test of reading them needs."""

import socket
from types import TracebackType
from typing import TypeVar

from google.protobuf.message import Message

from millstream.wire.pulsar.entry import encode_entry
from millstream.wire.pulsar.frames import (
    PREFIX_BYTES,
    command_body,
    encode_payload_command,
    measure_frame,
    read_frame,
)
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    CommandConnect,
    CommandConnected,
    CommandEndTxn,
    CommandEndTxnResponse,
    CommandNewTxn,
    CommandNewTxnResponse,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendReceipt,
    CommandTcClientConnectRequest,
    CommandTcClientConnectResponse,
    MessageMetadata,
    TxnAction,
)

__all__ = ["Transactor"]

M = TypeVar("M", bound=Message)


class Transactor:
    """A producer of one topic, in transactions and outside of them.

    Args:
        address: HOST:PORT of the broker.
        topic: a topic of one partition.
    """

    def __init__(self, address: str, topic: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._topic = f"persistent://public/default/{topic}"
        self._sequence_id = 0
        self._ask(CommandConnect(client_version="test", protocol_version=21), CommandConnected)
        self._ask(CommandTcClientConnectRequest(request_id=1, tc_id=0), CommandTcClientConnectResponse)
        self._ask(CommandProducer(topic=self._topic, producer_id=0, request_id=2), CommandProducerSuccess)

    def __enter__(self) -> "Transactor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def begin(self) -> int:
        """Begin a transaction that writes to the topic; returns its number."""
        number = self._ask(CommandNewTxn(request_id=3, txn_ttl_seconds=600_000), CommandNewTxnResponse)
        command = CommandAddPartitionToTxn(
            request_id=4, txnid_least_bits=number.txnid_least_bits, txnid_most_bits=0, partitions=[self._topic]
        )
        self._ask(command, CommandAddPartitionToTxnResponse)
        return number.txnid_least_bits

    def send(self, value: bytes, transaction: int | None = None) -> None:
        """Write a message."""
        command = CommandSend(producer_id=0, sequence_id=self._sequence_id)
        metadata = MessageMetadata(
            producer_name="p", sequence_id=self._sequence_id, publish_time=1_700_000_000_000 + self._sequence_id
        )
        if transaction is not None:
            command.txnid_least_bits, command.txnid_most_bits = transaction, 0
            metadata.txnid_least_bits, metadata.txnid_most_bits = transaction, 0
        self._sequence_id += 1
        self._ask(command, CommandSendReceipt, bytes(encode_entry(metadata, value)))

    def end(self, transaction: int, *, commit: bool) -> None:
        """Commit a transaction, or abort it."""
        action = TxnAction.COMMIT if commit else TxnAction.ABORT
        command = CommandEndTxn(request_id=5, txnid_least_bits=transaction, txnid_most_bits=0, txn_action=action)
        assert not self._ask(command, CommandEndTxnResponse).message

    def _ask(self, body: Message, kind: type[M], payload: bytes = b"") -> M:
        self._socket.sendall(b"".join(encode_payload_command(body, [payload] if payload else [])))
        data = b""
        while True:
            size = measure_frame(memoryview(data))
            if size and len(data) >= size:
                break
            received = self._socket.recv(65536)
            assert received, "the broker closed the connection"
            data += received
        command, _ = read_frame(memoryview(data)[PREFIX_BYTES:size])
        answer = command_body(command)
        assert isinstance(answer, kind), answer
        return answer
