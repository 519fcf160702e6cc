"""Commits in two steps: some processes write in transactions of their own, another commits what they have told it.

This is what a distributed job does whose tasks write and whose driver commits; each step is by another connection.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.model.frame import Attributes
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from millstream.wire.kafka.messages.end_txn import END_TXN, EndTxnRequest
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.conformance.raw.log_client import LogClient, batch_of, produce_request, records_of, resealed
from tests.support.server_process import ServerProcess, start

TASKS = 3
ADDS_BY_WRITING = 12
"""The first version of Produce that does."""
Told = tuple[str, int, int]
"""A transactional id, and the producer id and epoch it was given."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Servers on the same data, one after the other; the last one runs."""
    found = [start(str(tmp_path / "data"))]
    yield found
    assert found[-1].stop() == 0
    assert "Traceback" not in found[-1].log()


def again(servers: list[ServerProcess]) -> None:
    servers[-1].kill()
    servers.append(start(servers[-1].data_dir))


def write(server: ServerProcess, task: int, *, version: int) -> Told:
    """A task: it opens a transaction, writes two batches to a partition of its own, and is gone."""
    client, name = LogClient(server.kafka), f"job-{version}-{task}"
    opened = client.call(
        INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
    )
    assert opened.error_code == 0
    if version < ADDS_BY_WRITING:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=opened.producer_id,
            v3_and_below_producer_epoch=opened.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="sink", partitions=[task])],
        )
        [added] = client.call(ADD_PARTITIONS_TO_TXN, 3, request).results_by_topic_v3_and_below
        assert added.results_by_partition[0].partition_error_code == 0
    for sequence in range(2):
        batch = batch_of(
            b"%d %d" % (task, sequence),
            producer_id=opened.producer_id,
            producer_epoch=opened.producer_epoch,
            base_sequence=sequence,
        )
        batch[22] |= Attributes.TRANSACTIONAL
        produce = produce_request("sink", resealed(batch), task)
        produce.transactional_id = name
        answer = client.call(PRODUCE, version, produce).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer.error_message
    client.close()
    return name, opened.producer_id, opened.producer_epoch


def end(server: ServerProcess, told: Told, *, commit: bool, version: int) -> int:
    """The driver ends a transaction, over a connection of its own; gives the code of the answer."""
    client = LogClient(server.kafka)
    request = EndTxnRequest(transactional_id=told[0], producer_id=told[1], producer_epoch=told[2], committed=commit)
    code = int(client.call(END_TXN, version, request).error_code)
    client.close()
    return code


def values(server: ServerProcess, partition: int) -> list[bytes | None]:
    client = LogClient(server.kafka)
    found = records_of(client.fetch("sink", 0, partition, isolation_level=1).records)
    client.close()
    return [record.value for record in found]


@pytest.mark.parametrize(("produce_version", "end_version"), [(9, 3), (12, 5)])
def test_what_tasks_have_written_is_committed_by_their_driver(
    servers: list[ServerProcess], produce_version: int, end_version: int
) -> None:
    client = LogClient(servers[-1].kafka)
    client.create_topic("sink", TASKS)
    client.close()
    told = [write(servers[-1], task, version=produce_version) for task in range(TASKS)]
    lost = write(servers[-1], 0, version=21 - produce_version)  # of an attempt that nobody speaks of
    again(servers)
    assert [values(servers[-1], task) for task in range(TASKS)] == [[]] * TASKS
    for one in told[:1]:
        assert end(servers[-1], one, commit=True, version=end_version) == 0
    again(servers)  # a driver that dies between two of them begins anew
    for _ in range(2):
        for one in told:
            assert end(servers[-1], one, commit=True, version=end_version) == 0
        again(servers)
    assert end(servers[-1], told[0], commit=False, version=end_version) == ErrorCode.INVALID_TXN_STATE
    assert end(servers[-1], lost, commit=False, version=end_version) == 0
    assert [values(servers[-1], task) for task in range(TASKS)] == [
        [b"%d 0" % task, b"%d 1" % task] for task in range(TASKS)
    ]
