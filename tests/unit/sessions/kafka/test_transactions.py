"""Kafka transactions: who may do what when, what readers see, and what is left of it after a crash."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from millstream.model.pending import Pending
from millstream.sessions.kafka import transactional_writer
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.end_txn import END_TXN, EndTxnRequest
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.support.batches import batch
from tests.unit.sessions.kafka.conversation import fetch_request, produce_request
from tests.unit.sessions.kafka.transacting import ADDING, AS_BEFORE, Teller, transactional_batch

NONE = ErrorCode.NONE


@pytest.fixture
def teller() -> Teller:
    teller = Teller()
    teller.create("orders", 3)
    return teller


@pytest.fixture
def durable(tmp_path: Path) -> Teller:
    """One whose metadata outlives the process."""
    teller = Teller(str(tmp_path / "metadata"))
    teller.create("orders", 3)
    return teller


def test_readers_of_what_is_committed_wait_and_others_do_not(teller: Teller) -> None:
    teller.produce(b"before")
    who = teller.open()
    assert teller.write(who, b"in") == NONE
    teller.produce(b"behind")
    found = teller.fetched(committed=True)
    assert (found.high_watermark, found.last_stable_offset, found.aborted_transactions) == (3, 1, [])
    assert teller.values() == [b"before"]
    assert teller.values(committed=False) == [b"before", b"in", b"behind"]
    assert (teller.latest(committed=True), teller.latest(committed=False)) == (1, 3)
    teller.done(who)
    assert teller.values() == [b"before", b"in", b"behind"]
    assert (teller.latest(committed=True), teller.latest(committed=False)) == (3, 3)


def test_what_is_aborted_stays_for_those_who_do_not_insist(teller: Teller) -> None:
    who = teller.open()
    for sequence in range(3):
        assert teller.write(who, b"gone %d" % sequence, sequence) == NONE
    teller.produce(b"stays")
    who = teller.done(who, commit=False)
    assert teller.values() == [b"stays"]
    assert teller.values(committed=False) == [b"gone 0", b"gone 1", b"gone 2", b"stays"]
    assert teller.partition().stable_offset == 4


def test_a_time_that_is_not_decided_is_not_found_yet(teller: Teller) -> None:
    teller.produce(b"before")
    teller.pass_ms(1000)
    who = teller.open()
    now_ms = teller.runtime.now_ms()
    teller.write(who, b"in")
    assert teller.latest(committed=True, timestamp=now_ms) == -1
    assert teller.latest(committed=False, timestamp=now_ms) == 1
    teller.done(who)
    assert teller.latest(committed=True, timestamp=now_ms) == 1


def test_each_end_gives_the_next_epoch(teller: Teller) -> None:
    first = teller.open()
    teller.write(first, b"a")
    second = teller.done(first)
    assert second == (first[0], first[1] + 1)
    assert teller.write(first, b"late", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.write(second, b"b") == NONE
    assert teller.done(second, commit=False) == (first[0], first[1] + 2)
    assert teller.values() == [b"a"]


def test_clients_of_before_keep_their_epoch_and_their_sequences(teller: Teller) -> None:
    who = teller.open()
    for n in range(3):
        assert teller.add(who, 0) == NONE
        assert teller.write(who, b"%d" % n, n, version=AS_BEFORE) == NONE
        assert teller.end(who, commit=n != 1, version=3).error_code == NONE
    assert teller.add(who, 0) == NONE
    assert teller.write(who, b"gap", 9, version=AS_BEFORE) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    teller.end(who, commit=False, version=3)
    assert teller.values() == [b"0", b"2"]


def test_a_partition_must_be_added_where_writing_does_not_add_it(teller: Teller) -> None:
    who = teller.open()
    assert teller.write(who, b"x", version=10) == ErrorCode.INVALID_TXN_STATE
    assert teller.write(who, b"x", version=AS_BEFORE) == ErrorCode.TRANSACTION_ABORTABLE
    assert teller.add(who, 0, 1) == NONE
    assert teller.write(who, b"x", index=2, version=AS_BEFORE) == ErrorCode.TRANSACTION_ABORTABLE
    assert teller.write(who, b"x", version=AS_BEFORE) == NONE


def test_batches_on_their_way_keep_their_order_while_a_partition_is_added(teller: Teller) -> None:
    who = teller.open()
    pending = [teller.sending(who, b"%d" % n, n) for n in range(5)]
    assert teller.partition().log.end_offset == 0, "nothing is written before that it was added lasts"
    answers = [teller.wait(one) for one in pending]
    assert [(one.error_code, one.base_offset) for one in answers] == [(0, n) for n in range(5)]
    assert teller.service.kept_bytes == 0
    teller.done(who)
    assert teller.values() == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_the_end_behind_a_batch_waits_until_its_partition_is_added(teller: Teller, acks: int) -> None:
    who = teller.open()
    assert teller.write(who, b"0", index=1) == NONE
    ending = EndTxnRequest(transactional_id=teller.name, producer_id=who[0], producer_epoch=who[1], committed=True)
    end, more = (
        memoryview(b"".join(api.encode_request(version, 7, "client", request)))
        for api, version, request in ((END_TXN, 5, ending), (PRODUCE, ADDING, produce_request(None)))
    )
    frame = transactional_batch(b"1", who, 0, timestamp_ms=teller.runtime.now_ms())
    request = produce_request(frame, acks=acks)
    request.transactional_id = teller.name
    teller.send(PRODUCE, request, ADDING)
    assert teller.session.measure(more) == len(more)
    assert teller.session.measure(end) == 0
    assert teller.held == 1
    teller.runtime.run()
    assert teller.held == 0
    assert teller.session.measure(end) == len(end)
    teller.done(who)
    assert teller.values() == [b"1"]


def test_what_cannot_be_added_is_not_written(teller: Teller) -> None:
    who = teller.open()
    teller.store.failing = True
    pending = [teller.sending(who, b"x", n) for n in range(2)]
    assert [teller.wait(one).error_code for one in pending] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    teller.store.failing = False
    assert teller.partition().log.end_offset == 0
    assert teller.write(who, b"x") == NONE
    teller.done(who)
    assert teller.values() == [b"x"]


def test_a_batch_that_waits_is_refused_if_its_transaction_ends_meanwhile(teller: Teller) -> None:
    who = teller.open()
    teller.add(who, 1)
    late = teller.sending(who, b"late")
    ending = teller.ending(who, commit=False, version=3)
    assert teller.wait(late).error_code == ErrorCode.INVALID_TXN_STATE
    assert teller.wait(ending).error_code == NONE
    assert teller.values(committed=False) == []


def test_a_batch_that_comes_twice_is_kept_once(teller: Teller) -> None:
    who = teller.open()
    assert [teller.wait(teller.sending(who, b"x")).base_offset for _ in range(3)] == [0, 0, 0]
    teller.done(who, commit=False)
    assert teller.partition().log.end_offset == 1
    assert teller.values() == []


def test_batches_without_a_producer_are_refused(teller: Teller) -> None:
    who = teller.open()
    assert teller.write((-1, -1), b"x") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert teller.write(who, b"x", name="nobody") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert teller.write((who[0] + 1, who[1]), b"x") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert teller.write((who[0], who[1] + 1), b"x") == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_does_not_write_beside_its_own_transaction(teller: Teller) -> None:
    who = teller.open()
    teller.write(who, b"in")
    frame = batch(b"out", 1, teller.runtime.now_ms(), producer_id=who[0], epoch=who[1], sequence=1)
    answer = teller.ask(PRODUCE, produce_request(frame), ADDING).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE


# Names and epochs


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [(0, 50), (-1, 50), (900_001, 50), (1, 0), (900_000, 0)],
)
def test_bounds_of_the_timeout(teller: Teller, timeout_ms: int, code: int) -> None:
    assert teller.init(timeout_ms=timeout_ms).error_code == code


def test_the_bound_of_the_timeout_is_a_setting() -> None:
    teller = Teller(transaction__max__timeout__ms="3600000")
    assert teller.init(timeout_ms=3_600_000).error_code == NONE
    assert teller.init(timeout_ms=3_600_001).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_names_that_nobody_can_have(teller: Teller) -> None:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    assert teller.ask(INIT_PRODUCER_ID, request, 5).error_code == ErrorCode.INVALID_REQUEST
    assert teller.init("x" * 2001).error_code == ErrorCode.INVALID_REQUEST
    assert teller.init("x" * 2000).error_code == NONE


def test_whoever_comes_next_aborts_and_fences(teller: Teller) -> None:
    zombie = teller.open()
    teller.write(zombie, b"of the zombie")
    heir = teller.open()
    assert heir == (zombie[0], zombie[1] + 1)
    assert teller.write(zombie, b"late", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.add(zombie, 0, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.add(zombie, 0, version=2) == ErrorCode.PRODUCER_FENCED
    assert teller.end(zombie, version=1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.end(zombie, version=2).error_code == ErrorCode.PRODUCER_FENCED
    assert teller.add_group(zombie, "g") == ErrorCode.PRODUCER_FENCED
    assert teller.commit_offset(zombie, "g", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.init(expected=zombie, version=3).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.init(expected=zombie, version=4).error_code == ErrorCode.PRODUCER_FENCED
    teller.write(heir, b"of its heir")
    teller.done(heir)
    assert teller.values() == [b"of its heir"]


def test_a_producer_that_says_who_it_is_may_say_it_twice(teller: Teller) -> None:
    who = teller.open()
    first = teller.init(expected=who)
    again = teller.init(expected=who)
    assert (first.producer_id, first.producer_epoch) == (again.producer_id, again.producer_epoch) == (who[0], 1)
    assert teller.init(expected=(who[0], 0)).error_code == NONE
    assert teller.init(expected=(who[0], 1)).producer_epoch == 2
    assert teller.init(expected=who).error_code == ErrorCode.PRODUCER_FENCED


def test_epochs_that_are_used_up_lead_to_another_id(teller: Teller) -> None:
    who = teller.open()
    producer = teller.broker.transactional_producers.find("teller")
    assert producer is not None
    producer.identity = producer.identity._replace(epoch=32765)
    last = teller.open()
    assert last == (who[0], 32766)
    teller.write(last, b"x")
    after = teller.done(last)
    assert (after[0] != who[0], after[1]) == (True, 0)
    assert teller.end(last).error_code == NONE, "the end of a transaction can be asked for again"
    assert teller.end(last, commit=False).error_code == ErrorCode.INVALID_TXN_STATE
    teller.write(after, b"y")
    teller.done(after)
    assert teller.values() == [b"x", b"y"]


def test_ids_that_rest_are_forgotten_and_those_with_a_transaction_are_not() -> None:
    teller = Teller(transactional__id__expiration__ms="3600000")
    teller.create("orders")
    resting, busy = teller.open("resting"), teller.open("busy", timeout_ms=900_000)
    teller.pass_ms(3_500_000)
    teller.write(busy, b"x", name="busy")
    teller.pass_ms(500_000)
    assert teller.broker.transactional_producers.find("resting") is None
    assert teller.write(resting, b"x", name="resting") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert teller.end(busy, name="busy").error_code == NONE


# The end


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("commit", [True, False])
def test_the_same_end_again_is_answered_the_same(durable: Teller, version: int, commit: bool) -> None:
    who = durable.open()
    durable.write(who, b"x")
    answers = [durable.end(who, commit=commit, version=version) for _ in range(2)]
    durable.again()
    answers += [durable.end(who, commit=commit, version=version) for _ in range(2)]
    assert {(one.error_code, one.producer_id, one.producer_epoch) for one in answers} == {
        (0, who[0], 1) if version == 5 else (0, -1, -1)
    }
    assert durable.end(who, commit=not commit, version=version).error_code == ErrorCode.INVALID_TXN_STATE
    assert durable.values() == ([b"x"] if commit else [])


def test_ends_that_are_asked_for_at_the_same_time(teller: Teller) -> None:
    who = teller.open()
    teller.write(who, b"x")
    same = [teller.ending(who, commit=True, version=5) for _ in range(3)]
    other = teller.ending(who, commit=False, version=5)
    assert [teller.wait(one).error_code for one in same] == [NONE] * 3
    assert teller.wait(other).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert teller.values() == [b"x"]


def test_an_end_of_nothing(teller: Teller) -> None:
    who = teller.open()
    assert teller.end(who, version=4).error_code == ErrorCode.INVALID_TXN_STATE
    assert teller.end(who, commit=False, version=4).error_code == ErrorCode.INVALID_TXN_STATE
    assert teller.end(who).error_code == ErrorCode.INVALID_TXN_STATE
    assert teller.end(who, commit=False).producer_epoch == who[1] + 1
    assert teller.end((who[0] + 1, 0), version=4).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert teller.end(who, name="nobody").error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_delayed_end_does_not_end_the_next_transaction(teller: Teller) -> None:
    first = teller.open()
    teller.write(first, b"a")
    second = teller.done(first)
    teller.write(second, b"b")
    assert teller.end(first, commit=True).error_code == NONE  # of the first, which was committed
    assert teller.values() == [b"a"]
    teller.done(second, commit=False)
    assert teller.values() == [b"a"]


def test_a_decision_that_cannot_be_stored_is_taken_back(teller: Teller) -> None:
    who = teller.open()
    teller.write(who, b"x")
    teller.store.failing = True
    assert teller.end(who).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert teller.values() == []
    teller.store.failing = False
    assert teller.write(who, b"y", 1) == NONE
    teller.done(who)
    assert teller.values() == [b"x", b"y"]


def test_a_commit_waits_until_what_was_written_is_on_the_disk(durable: Teller) -> None:
    who = durable.open()
    assert durable.write(who, b"x", acks=1) == NONE
    durable.done(who)
    durable.files.crash(1)
    durable.store.close()
    durable.start()
    assert durable.values() == [b"x"]


def test_its_time_over_it_is_aborted_and_its_producer_fenced(teller: Teller) -> None:
    who = teller.open(timeout_ms=5000)
    teller.write(who, b"late")
    teller.produce(b"behind")
    teller.pass_ms(4999)
    assert teller.values() == []
    teller.pass_ms(1)
    assert teller.values() == [b"behind"]
    assert teller.end(who, version=4).error_code == ErrorCode.PRODUCER_FENCED
    assert teller.write(who, b"later", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.open()[1] == who[1] + 2


def test_a_timeout_that_cannot_be_stored_comes_again(teller: Teller) -> None:
    who = teller.open(timeout_ms=5000)
    teller.write(who, b"late")
    teller.store.failing = True
    teller.pass_ms(7000)
    teller.store.failing = False
    assert teller.partition().stable_offset == 0
    teller.pass_ms(2000)
    assert teller.partition().stable_offset == 1
    assert teller.values() == []


# Crashes


@pytest.mark.parametrize("version", [AS_BEFORE, ADDING])
def test_an_open_transaction_goes_on_after_a_crash(durable: Teller, version: int) -> None:
    who = durable.open()
    if version == AS_BEFORE:
        durable.add(who, 0)
    assert durable.write(who, b"a", 0, version=version) == NONE
    durable.produce(b"beside")
    durable.again()
    assert durable.values() == []
    assert durable.write(who, b"a", 0, version=version) == NONE, "a batch that is sent again"
    assert durable.write(who, b"b", 1, version=version) == NONE
    assert durable.write(who, b"gap", 3, version=version) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    durable.again()
    assert durable.end(who, version=5 if version == ADDING else 3).error_code == NONE
    durable.again()
    assert durable.values() == [b"a", b"beside", b"b"]


def test_what_was_aborted_stays_aborted_after_a_crash(durable: Teller) -> None:
    who = durable.open()
    for n in range(6):
        assert durable.add(who, 0) == NONE
        assert durable.write(who, b"%d" % n, n, version=AS_BEFORE) == NONE
        assert durable.end(who, commit=n % 2 == 0, version=3).error_code == NONE
    assert durable.add(who, 0) == NONE
    assert durable.write(who, b"open", 6, version=AS_BEFORE) == NONE
    durable.again()
    assert durable.values() == [b"0", b"2", b"4"]
    assert durable.values(committed=False) == [b"0", b"1", b"2", b"3", b"4", b"5", b"open"]
    durable.open()
    durable.again()
    assert durable.values() == [b"0", b"2", b"4"]


def test_many_aborted_transactions_become_one_document(durable: Teller) -> None:
    who = durable.open()
    for n in range(600):
        durable.write(who, b"%d" % n)
        who = durable.done(who, commit=n % 300 == 299)
    assert len(durable.broker.documents.of_kind("transaction-aborted")) < 300
    durable.again()
    assert durable.values() == [b"299", b"599"]
    assert len(durable.values(committed=False)) == 600


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_of_power_before_what_it_has_written(durable: Teller, seed: int) -> None:
    """What others wrote before it may be lost if it was not flushed; its records stand at earlier offsets then."""
    for n in range(20):
        durable.produce(b"plain %d" % n, acks=1)
    who = durable.open()
    assert durable.add(who, 0) == NONE
    durable.files.crash(seed)
    durable.store.close()
    durable.start()
    kept = durable.values()
    assert durable.write(who, b"open", version=AS_BEFORE) == NONE
    for _ in range(2):
        durable.again()
        assert durable.values() == kept
        assert durable.values(committed=False) == [*kept, b"open"]
    durable.done(who, commit=False)
    assert durable.values() == kept


def test_it_times_out_after_a_crash(durable: Teller) -> None:
    who = durable.open(timeout_ms=60_000)
    durable.write(who, b"late")
    durable.again()
    durable.pass_ms(120_000)
    assert durable.partition().stable_offset == 1
    assert durable.values() == []
    assert durable.end(who, version=4).error_code == ErrorCode.PRODUCER_FENCED


def test_a_transaction_is_ended_by_another_process(durable: Teller) -> None:
    """What commits in two steps does so: one process writes, and another commits with what it is told."""
    named = {f"task-{n}": durable.open(f"task-{n}") for n in range(3)}
    for n, (name, who) in enumerate(named.items()):
        assert durable.write(who, name.encode(), index=n, name=name) == NONE
    durable.again()
    for _ in range(2):
        for name, who in named.items():
            assert durable.end(who, version=3, name=name).error_code == NONE
        durable.again()
    assert [durable.values(index=n) for n in range(3)] == [[b"task-0"], [b"task-1"], [b"task-2"]]


def test_a_deleted_topic_takes_its_part_of_a_transaction_along(durable: Teller) -> None:
    durable.create("other")
    who = durable.open()
    assert durable.add(who, 0, topic="other") == NONE
    durable.write(who, b"x")
    durable.wait(durable.broker.delete_topic(durable.topic("other")))
    durable.again()
    durable.done(who)
    assert durable.values() == [b"x"]


def test_batches_that_wait_are_bounded(teller: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional_writer, "_KEPT_BYTES_MAX", 250)
    who = teller.open()
    pending = [teller.sending(who, b"x" * 40, n) for n in range(4)]
    codes = [teller.wait(one).error_code for one in pending]
    assert codes == [NONE, NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS]
    assert teller.service.kept_bytes == 0
    assert teller.write(who, b"x" * 40, 2) == NONE


def test_a_writer_is_told_to_come_again_while_its_transaction_ends(teller: Teller) -> None:
    who = teller.open()
    teller.write(who, b"x")
    ending = teller.ending(who, commit=True, version=3)
    assert teller.wait(teller.sending(who, b"y", 1, version=AS_BEFORE)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    teller.wait(ending)
    teller.add(who, 0)
    ending = teller.ending(who, commit=True, version=3)
    late = teller.sending(who, b"z", 1)
    assert teller.wait(late).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    teller.wait(ending)
    assert teller.values() == [b"x"]


def test_readers_that_wait_are_answered_by_the_decision(teller: Teller) -> None:
    """And by nothing before it: neither what is written in the transaction, nor what is written behind it."""
    who = teller.open()
    seen: dict[bool, list[bytes]] = {True: [], False: []}

    def note(committed: bool, done: Pending[Any]) -> None:
        seen[committed].append(bytes(done.result().responses[0].partitions[0].records))

    for committed in seen:
        request = fetch_request(min_bytes=1, max_wait_ms=60_000)
        request.isolation_level = int(committed)
        pending = teller.send(FETCH, request, 12)
        assert pending is not None
        pending.when_done(partial(note, committed))
    teller.write(who, b"in")
    teller.produce(b"behind")
    teller.runtime.run()
    assert (len(seen[True]), len(seen[False])) == (0, 1)
    teller.done(who)
    assert len(seen[True]) == 1
    assert b"in" in seen[True][0]
