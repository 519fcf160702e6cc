"""A batch is published once, wherever its tasks or its driver die, and however often it runs again."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from millstream.spark.connections import Connections
from millstream.spark.errors import BrokerUnreachable, PublicationLost, TransactionLost
from millstream.spark.servers import Servers
from millstream.spark.write import task
from millstream.spark.write.cluster import Cluster
from millstream.spark.write.ledger import State
from millstream.spark.write.options import WriteOptions
from millstream.spark.write.publishing import publish, withdraw
from millstream.spark.write.task import Job, Written, write_rows
from millstream.spark.write.transactions import Slot
from millstream.wire.kafka.api import Api
from tests.spark.conftest import Topics
from tests.spark.write.conftest import options_for, values
from tests.spark.write.tables import table
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

_TASKS = 4
_ROWS = 50


class Died(BaseException):
    """What a process that is killed does not catch."""


class Killer:
    """Lets the process die at a request: from then on nothing it does reaches a broker.

    Args:
        monkeypatch: undoes it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def at(self, name: str, number: int, *, answered: bool) -> None:
        """Die at the n-th request of an API, from 1 on: before it is sent, or after its answer has come."""
        seen = {"sent": 0, "answered": 0}
        dead: list[bool] = []

        def counted(event: str, api: Api, now: bool) -> None:
            seen[event] += api.name == name
            if dead or (now and api.name == name and seen[event] == number):
                dead.append(True)
                raise Died

        send, answer = Connections._send, Connections._answer

        def sending(self: Connections, server: str, api: Api, version: int, request: object) -> int:
            counted("sent", api, not answered)
            return send(self, server, api, version, request)

        def answering(self: Connections, server: str, api: Api, version: int, sent: int) -> Any:
            result = answer(self, server, api, version, sent)
            counted("answered", api, answered)
            return result

        self._monkeypatch.setattr(Connections, "_send", sending)
        self._monkeypatch.setattr(Connections, "_answer", answering)

    def over(self) -> None:
        """A new process."""
        self._monkeypatch.undo()


@pytest.fixture
def killer() -> Iterator[Killer]:
    with pytest.MonkeyPatch.context() as patch:
        yield Killer(patch)


class Query:
    """A streaming query over numbers, batch by batch.

    Args:
        options: of the sink.
        name: the application id.
    """

    def __init__(self, options: WriteOptions, name: str) -> None:
        self.options = options
        self.name = name
        self.query_id = "query"

    def job(self, batch: int) -> Job:
        """What a task is part of."""
        return Job(application_id=self.name, query_id=self.query_id, batch_id=batch)

    def rows(self, batch: int, task: int) -> list[bytes]:
        """The rows of a task."""
        begin = (batch * _TASKS + task) * _ROWS
        return [b"%06d" % n for n in range(begin, begin + _ROWS)]

    def write(self, batch: int, tasks: Sequence[int] = range(_TASKS), attempt: int = 0) -> list[Written]:
        """Run the tasks of a batch."""
        return [
            write_rows(self.options, self.job(batch), Slot(task, attempt), [table(value=self.rows(batch, task))])
            for task in tasks
        ]

    def run(self, batch: int) -> None:
        """Run a batch."""
        publish(self.options, self.write(batch))


def _expected(batches: int) -> list[bytes]:
    return [b"%06d" % n for n in range(batches * _TASKS * _ROWS)]


@pytest.fixture
def query(broker: ServerProcess, topics: Topics) -> Query:
    topic = topics.create("published", partitions=3)
    return Query(options_for(broker.kafka, topic=topic), f"application of {topic}")


def _topic(query: Query) -> str:
    assert query.options.topic is not None
    return query.options.topic


def _values(query: Query) -> list[bytes]:
    return values(str(query.options.servers), _topic(query))


def _open_transactions(query: Query) -> set[str]:
    with Cluster(query.options) as cluster:
        return {
            name
            for name in cluster.transactions(query.name)._ongoing()
            if name.startswith(f"millstream-sink-{query.name}")
        }


def test_a_batch_is_seen_when_it_is_published_and_not_before(query: Query) -> None:
    written = query.write(0)
    assert _values(query) == []
    assert len(_open_transactions(query)) == _TASKS
    publish(query.options, written)
    assert _values(query) == _expected(1)
    query.run(1)
    assert _values(query) == _expected(2)
    assert _open_transactions(query) == set()
    with Cluster(query.options) as cluster:
        entry = cluster.ledger(query.name).read()
    assert entry is not None
    assert (entry.state, entry.batch_id, entry.query_id) == (State.DONE, 1, "query")


def test_a_batch_that_runs_again(query: Query) -> None:
    query.run(0)
    query.run(0)
    assert _values(query) == _expected(1)
    again = query.write(0)
    assert [one.part for one in again] == [None] * _TASKS, "nothing is written again"


def _every_death() -> Iterator[tuple[str, int, bool]]:
    for answered in (False, True):
        yield from (("InitProducerId", n, answered) for n in (1, 3))
        yield from (("AddPartitionsToTxn", n, answered) for n in (1, 4))
        yield from (("Produce", n, answered) for n in (1, 4))
        yield from (("OffsetFetch", n, answered) for n in (1, 4, 5))
        yield from (("OffsetCommit", n, answered) for n in (1, 2))
        yield from (("EndTxn", n, answered) for n in range(1, _TASKS + 1))
        yield ("ListTransactions", 1, answered)


@pytest.mark.parametrize(
    ("name", "number", "answered"),
    list(_every_death()),
    ids=lambda value: {True: "after", False: "before"}.get(value, value) if isinstance(value, bool) else str(value),
)
def test_the_driver_or_a_task_dies(name: str, number: int, answered: bool, query: Query, killer: Killer) -> None:
    query.run(0)
    killer.at(name, number, answered=answered)
    with pytest.raises(Died):
        query.run(1)
    killer.over()
    query.run(1)
    query.run(2)
    assert _values(query) == _expected(3)
    assert _open_transactions(query) == set()


@pytest.mark.parametrize("number", range(1, _TASKS + 1))
def test_it_dies_again_and_again(number: int, query: Query, killer: Killer) -> None:
    for name, at, answered in (("EndTxn", number, False), ("EndTxn", 1, True), ("OffsetCommit", 1, False)):
        killer.at(name, at, answered=answered)
        with pytest.raises(Died):
            query.run(0)
        killer.over()
    query.run(0)
    assert _values(query) == _expected(1)


def test_a_task_that_fails_runs_again(query: Query) -> None:
    def failing() -> Iterator[Any]:
        yield table(value=query.rows(0, 1))
        raise ValueError("the rows cannot be computed")

    with pytest.raises(ValueError, match="cannot be computed"):
        write_rows(query.options, query.job(0), Slot(1, 0), failing())
    assert _open_transactions(query) == set(), "it has aborted its transaction"
    publish(query.options, query.write(0, [0, 2, 3]) + query.write(0, [1], attempt=1))
    assert _values(query) == _expected(1)


def test_a_task_that_is_overtaken_by_another_under_its_name(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_BLOCK_BYTES", 1)
    other: list[Written] = []

    def overtaken() -> Iterator[Any]:
        yield table(value=query.rows(0, 1))
        other.extend(query.write(0, [1]))
        yield table(value=query.rows(0, 1))

    with pytest.raises(TransactionLost, match=r"has ended: .*, or another query has the same application id"):
        write_rows(query.options, query.job(0), Slot(1, 0), overtaken())
    publish(query.options, query.write(0, [0, 2, 3]) + other)
    assert _values(query) == _expected(1)


def test_what_killed_attempts_leave_is_swept_away(query: Query, killer: Killer) -> None:
    killer.at("Produce", 1, answered=True)
    with pytest.raises(Died):
        query.write(0, [1])
    killer.over()
    speculative = query.write(0, [2], attempt=1)
    assert len(speculative) == 1
    written = query.write(0, [0, 2, 3]) + query.write(0, [1], attempt=1)
    assert len(_open_transactions(query)) == _TASKS + 2
    publish(query.options, written)
    assert _open_transactions(query) == set()
    assert _values(query) == _expected(1)


def test_a_batch_that_is_aborted(query: Query) -> None:
    query.run(0)
    withdraw(query.options, query.write(1, [0, 1]))
    assert _open_transactions(query) == set()
    assert _values(query) == _expected(1)
    query.run(1)
    assert _values(query) == _expected(2)


@pytest.mark.parametrize(("name", "number"), [("EndTxn", 1), ("EndTxn", 3), ("OffsetCommit", 2)])
def test_spark_aborts_what_failed_to_commit(name: str, number: int, query: Query, killer: Killer) -> None:
    written = query.write(0)
    killer.at(name, number, answered=True)
    with pytest.raises(Died):
        publish(query.options, written)
    killer.over()
    withdraw(query.options, written)
    query.run(0)
    assert _values(query) == _expected(1)


def test_a_checkpoint_that_was_put_back(query: Query, killer: Killer) -> None:
    query.run(0)
    killer.at("OffsetCommit", 1, answered=True)
    with pytest.raises(Died):
        query.run(1)
    killer.over()
    query.run(0)
    assert _values(query) == _expected(2), "what was decided on is published, and nothing again"
    query.run(1)
    assert _values(query) == _expected(2)


def test_a_batch_that_is_left_unfinished(query: Query, killer: Killer) -> None:
    killer.at("EndTxn", 1, answered=True)
    with pytest.raises(Died):
        query.run(0)
    killer.over()
    with pytest.raises(PublicationLost, match="batch 0 is to be published and is not finished, and this is batch 1"):
        query.run(1)
    query.run(0)
    query.run(1)
    assert _values(query) == _expected(2)


def test_a_batch_that_was_lost_is_not_taken_for_done(query: Query) -> None:
    query.run(0)
    written = query.write(1)
    _drop_open_transactions(query)
    with pytest.raises(TransactionLost):
        publish(query.options, written)
    query.run(0)
    assert _values(query) == _expected(1)
    query.run(1)
    assert _values(query) == _expected(2)


def test_another_checkpoint_under_the_same_name(query: Query) -> None:
    query.run(0)
    query.query_id = "another"
    with pytest.raises(PublicationLost, match=r"is that of another query .* take another applicationId, or delete"):
        query.run(0)
    query.name = "another name"
    query.run(0)
    assert _values(query) == sorted(_expected(1) * 2), "it is another application, which starts anew"


def test_a_batch_without_rows(query: Query) -> None:
    empty = write_rows(query.options, query.job(0), Slot(0, 0), [table(value=[])])
    publish(query.options, [empty])
    publish(query.options, [])
    assert _values(query) == []
    query.run(1)


def test_a_table_by_itself(query: Query, killer: Killer) -> None:
    job = Job(application_id=query.name, query_id=None, batch_id=None)

    def write() -> list[Written]:
        return [write_rows(query.options, job, Slot(n, 0), [table(value=query.rows(0, n))]) for n in range(_TASKS)]

    withdraw(query.options, write())
    assert _values(query) == []
    publish(query.options, write())
    assert _values(query) == _expected(1)
    with Cluster(query.options) as cluster:
        assert cluster.ledger(query.name).read() is None


def _drop_open_transactions(query: Query) -> None:
    """Let the broker abort all open transactions, as it does when they take too long."""
    with Cluster(query.options) as cluster:
        cluster.transactions(query.name).sweep(timeout_ms=60_000)
    assert _open_transactions(query) == set()


def _dies(killer: Killer, query: Query, name: str, number: int) -> None:
    killer.at(name, number, answered=True)
    with pytest.raises(Died):
        query.run(0)
    killer.over()


def test_a_batch_that_takes_too_long(query: Query) -> None:
    options = query.options
    query.options = replace(options, transaction_timeout_ms=3000)
    written = query.write(0)
    eventually(lambda: not _open_transactions(query))
    with pytest.raises(TransactionLost, match=r"nothing of batch 0 was published.*kafka.transaction.timeout.ms"):
        publish(query.options, written)
    assert _values(query) == []
    query.options = options
    query.run(0)
    assert _values(query) == _expected(1)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_was_lost_of_an_intent_is_written_again(number: int, query: Query, killer: Killer) -> None:
    _dies(killer, query, "EndTxn", number)
    _drop_open_transactions(query)
    query.run(0)
    query.run(1)
    assert _values(query) == _expected(2)


def test_an_intent_of_which_all_was_lost(query: Query, killer: Killer) -> None:
    _dies(killer, query, "OffsetCommit", 1)
    _drop_open_transactions(query)
    query.run(0)
    assert _values(query) == _expected(1)


def test_what_was_lost_and_is_not_the_same_now(query: Query, killer: Killer) -> None:
    _dies(killer, query, "EndTxn", 2)
    _drop_open_transactions(query)
    rows: Callable[[int, int], list[bytes]] = query.rows
    query.rows = lambda batch, task: rows(batch, task)[:-1]  # type: ignore[method-assign] # other rows than before
    with pytest.raises(PublicationLost, match=r"published in part, and brings other rows .*\(49 in place of 50"):
        query.run(0)


def test_what_was_lost_and_has_no_task_now(query: Query, killer: Killer) -> None:
    _dies(killer, query, "EndTxn", 1)
    _drop_open_transactions(query)
    written = query.write(0, [0])
    with pytest.raises(PublicationLost, match=r"published in part: 3 of 4 transactions \(150 rows\) are lost"):
        publish(query.options, written)


def test_a_broker_that_is_gone(query: Query) -> None:
    written = query.write(0)
    begun = time.monotonic()
    with pytest.raises(BrokerUnreachable, match=r"see kafka.bootstrap.servers"):
        publish(replace(query.options, servers=Servers.at("127.0.0.1:1"), patience_s=0.5), written)
    assert time.monotonic() - begun < 5
    publish(query.options, written)
    assert _values(query) == _expected(1)
