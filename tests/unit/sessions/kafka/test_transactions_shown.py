"""What is told of transactions: to other brokers, and to those who look after them."""

from typing import Any

import pytest

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from millstream.wire.kafka.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicRequest,
)
from millstream.wire.kafka.messages.describe_transactions import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest
from millstream.wire.kafka.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from millstream.wire.kafka.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from tests.unit.sessions.kafka.transacting import Teller, Who


@pytest.fixture
def teller() -> Teller:
    teller = Teller()
    teller.create("orders", 3)
    return teller


def described(teller: Teller, name: str) -> Any:
    [found] = teller.ask(
        DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(transactional_ids=[name])
    ).transaction_states
    return found


def listed(teller: Teller, **filters: Any) -> dict[str, str]:
    answer = teller.ask(LIST_TRANSACTIONS, ListTransactionsRequest(**filters))
    assert answer.error_code == ErrorCode.NONE
    return {one.transactional_id: one.transaction_state for one in answer.transaction_states}


def test_the_states_of_a_producer(teller: Teller) -> None:
    states = []

    def note() -> None:
        states.append(described(teller, "teller").transaction_state)

    who = teller.open(timeout_ms=5000)
    note()
    teller.add(who, 1, 0)
    note()
    found = described(teller, "teller")
    assert (found.producer_id, found.producer_epoch, found.transaction_timeout_ms) == (*who, 5000)
    assert found.transaction_start_time_ms == teller.runtime.now_ms()
    assert [(one.topic, one.partitions) for one in found.topics] == [("orders", [0, 1])]
    ending = teller.ending(who, commit=True, version=5)
    note()
    teller.wait(ending)
    note()
    who = who[0], who[1] + 1
    teller.add(who, 0)
    ending = teller.ending(who, commit=False, version=5)
    note()
    teller.wait(ending)
    note()
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"]
    assert described(teller, "teller").transaction_start_time_ms == -1


def test_names_that_nobody_has(teller: Teller) -> None:
    assert described(teller, "nobody").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert described(teller, "").error_code == ErrorCode.INVALID_REQUEST


def test_filters_of_the_list(teller: Teller) -> None:
    whos: dict[str, Who] = {name: teller.open(name) for name in ("a-1", "a-2", "b-1")}
    teller.add(whos["a-1"], 0, name="a-1")
    teller.pass_ms(1000)
    teller.add(whos["b-1"], 0, name="b-1")
    assert listed(teller) == {"a-1": "Ongoing", "a-2": "Empty", "b-1": "Ongoing"}
    assert listed(teller, state_filters=["Ongoing"]) == {"a-1": "Ongoing", "b-1": "Ongoing"}
    assert listed(teller, producer_id_filters=[whos["a-2"][0]]) == {"a-2": "Empty"}
    assert listed(teller, duration_filter=999) == {"a-1": "Ongoing"}
    assert listed(teller, transactional_id_pattern="a-.") == {"a-1": "Ongoing", "a-2": "Empty"}
    assert listed(teller, transactional_id_pattern="a") == {}
    odd = teller.ask(LIST_TRANSACTIONS, ListTransactionsRequest(state_filters=["Odd", "Empty"]))
    assert odd.unknown_state_filters == ["Odd"]
    assert [one.transactional_id for one in odd.transaction_states] == ["a-2"]


@pytest.mark.parametrize("pattern", ["(", "a{1001}", "x" * 1001])
def test_patterns_that_are_none(teller: Teller, pattern: str) -> None:
    answer = teller.ask(LIST_TRANSACTIONS, ListTransactionsRequest(transactional_id_pattern=pattern))
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_cannot_take_long(teller: Teller) -> None:
    teller.open("a" * 2000)
    assert listed(teller, transactional_id_pattern="(a+)+b") == {}


def test_producers_of_a_partition(teller: Teller) -> None:
    teller.produce(b"before")
    who = teller.open()
    for n in range(3):
        teller.write(who, b"x", n)
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0, 1, 9])])
    first, second, third = teller.ask(DESCRIBE_PRODUCERS, request).topics[0].partitions
    [found] = first.active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (*who, 2)
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (1, -1)
    assert second.active_producers == []
    assert third.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    teller.done(who)
    first = teller.ask(DESCRIBE_PRODUCERS, request).topics[0].partitions[0]
    assert first.active_producers[0].current_txn_start_offset == -1


@pytest.mark.parametrize("version", [4, 5])
def test_what_brokers_ask_each_other(teller: Teller, version: int) -> None:
    who = teller.open()
    teller.add(who, 0)

    def asked(*indexes: int, verify: bool, epoch: int = 0) -> list[int]:
        topic = AddPartitionsToTxnTopic(name="orders", partitions=list(indexes))
        one = AddPartitionsToTxnTransaction(
            transactional_id="teller",
            producer_id=who[0],
            producer_epoch=who[1] + epoch,
            verify_only=verify,
            topics=[topic],
        )
        answer = teller.ask(ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(transactions=[one]), version)
        [result] = answer.results_by_transaction[0].topic_results
        return [one.partition_error_code for one in result.results_by_partition]

    assert asked(0, 1, verify=True) == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]
    assert asked(0, verify=True, epoch=1) == [ErrorCode.PRODUCER_FENCED]
    assert asked(1, 2, verify=False) == [ErrorCode.NONE, ErrorCode.NONE]
    assert asked(0, 1, 2, verify=True) == [ErrorCode.NONE] * 3


def test_partitions_are_added_all_or_none(teller: Teller) -> None:
    who = teller.open()
    topic = AddPartitionsToTxnTopic(name="orders", partitions=[0, 7])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="teller",
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[topic],
    )
    [result] = teller.ask(ADD_PARTITIONS_TO_TXN, request, 3).results_by_topic_v3_and_below
    codes = [one.partition_error_code for one in result.results_by_partition]
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert described(teller, "teller").topics == []


def test_the_coordinator_of_a_transactional_id(teller: Teller) -> None:
    request = FindCoordinatorRequest(key="teller", key_type=1, coordinator_keys=["teller"])
    for version in FIND_COORDINATOR.versions:
        if version:
            answer = teller.ask(FIND_COORDINATOR, request, version)
            found = answer.coordinators[0] if version >= 4 else answer
            assert (found.error_code, found.host, found.port) == (0, "broker.example", 9092)


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_features_are_told_to_those_who_can_read_them(teller: Teller, version: int) -> None:
    answer = teller.ask(API_VERSIONS, ApiVersionsRequest(), version)
    features = [(one.name, one.min_version_level, one.max_version_level) for one in answer.finalized_features]
    assert features == ([("transaction.version", 2, 2)] if version >= 4 else [])
