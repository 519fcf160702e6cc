"""The metadata store: all or nothing, group commit, failure, and what a restart finds."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event

from millstream.storage.metadata import (
    METADATA_LANE,
    Change,
    CommittedOffset,
    DeleteDocument,
    DeleteOffsets,
    DeletePartitionOffsets,
    DeleteTopic,
    MetadataFailed,
    MetadataStore,
    PutDocument,
    PutOffset,
    PutTopic,
    PutValue,
    Snapshot,
    StoredTopic,
)
from tests.support.simulated_runtime import SimulatedRuntime

ORDERS = StoredTopic(UUID(int=1), "public", "default", "orders", 3, 1_700_000_000_000, {"retention.ms": "5"})
SALES = StoredTopic(UUID(int=2), "acme", "sales", "späti.東京-🚲", 1, 0)


class Stores:
    """Stores on one database, one after the other."""

    def __init__(self, path: Path) -> None:
        self.runtime = SimulatedRuntime()
        self.path = path
        self._open: MetadataStore | None = None

    def opened(self) -> MetadataStore:
        self.close()
        self._open = MetadataStore(self.runtime, f"sqlite:///{self.path}", durable=True)
        self._open.load()
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open.close()

    def found(self) -> Snapshot:
        return self.opened().load()

    def submit(self, *changes: Change) -> None:
        pending = self.opened().submit(changes)
        self.runtime.run()
        pending.result()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    stores = Stores(tmp_path / "metadata.sqlite")
    yield stores
    stores.close()


def committed(offset: int, note: str = "") -> CommittedOffset:
    return CommittedOffset(offset, -1, note, 1000)


def test_a_new_store_is_empty(stores: Stores) -> None:
    assert stores.found() == Snapshot({}, [], [], {})


def test_everything_is_found_again(stores: Stores) -> None:
    largest = CommittedOffset(2**63 - 1, 2**31 - 1, "späti", 2**62)
    stores.submit(
        PutValue("cluster", "abc"), PutTopic(ORDERS), PutTopic(SALES), PutOffset("g", ORDERS.id, 2, largest)
    )
    assert stores.found() == Snapshot({"cluster": "abc"}, [ORDERS, SALES], [], {("g", ORDERS.id, 2): largest})


def test_the_last_change_counts(stores: Stores) -> None:
    stores.submit(
        PutValue("a", "1"), PutValue("a", "2"), PutTopic(ORDERS), PutOffset("g", ORDERS.id, 0, committed(1))
    )
    wider = StoredTopic(ORDERS.id, "public", "default", "orders", 5, ORDERS.created_ms, {"cleanup.policy": "delete"})
    stores.submit(PutTopic(wider), PutOffset("g", ORDERS.id, 0, committed(2, "note")))
    assert stores.found() == Snapshot({"a": "2"}, [wider], [], {("g", ORDERS.id, 0): committed(2, "note")})


def test_deleting_a_topic_deletes_its_offsets_and_no_others(stores: Stores) -> None:
    for topic in (ORDERS, SALES):
        stores.submit(PutTopic(topic), PutOffset("g", topic.id, 0, committed(1)))
    stores.submit(DeleteTopic(ORDERS.id))
    assert stores.found() == Snapshot({}, [SALES], [ORDERS.id], {("g", SALES.id, 0): committed(1)})


def test_deleting_offsets(stores: Stores) -> None:
    def fill() -> None:
        stores.submit(
            *[PutOffset(g, t.id, p, committed(p)) for g in ("g", "h") for t in (ORDERS, SALES) for p in (0, 1)]
        )

    fill()
    stores.submit(DeleteOffsets("g", ORDERS.id, 1))
    assert len(stores.found().offsets) == 7
    assert ("g", ORDERS.id, 1) not in stores.found().offsets
    stores.submit(DeleteOffsets("g"))
    assert {group for group, _, _ in stores.found().offsets} == {"h"}


def test_deleting_the_offsets_of_the_last_partitions(stores: Stores) -> None:
    one = CommittedOffset(1, -1, "", 2, kept=True)
    places = [(group, topic.id, index) for group in "gh" for topic in (ORDERS, SALES) for index in range(3)]
    stores.submit(*(PutOffset(*place, one) for place in places), DeletePartitionOffsets(ORDERS.id, 1))
    kept = {place: one for place in places if place[1] == SALES.id or place[2] < 1}
    assert stores.found().offsets == kept


def test_what_gathers_during_a_commit_goes_into_one_more(stores: Stores) -> None:
    store = stores.opened()
    commits = 0

    def count(_: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(store._engine, "commit", count)
    stores.runtime.hold(METADATA_LANE)
    pendings = [store.submit([PutValue("0", "x")])]
    stores.runtime.run()
    pendings += [store.submit([PutValue(str(n), "x")]) for n in range(1, 50)]
    stores.runtime.run()
    assert not any(pending.done for pending in pendings)
    stores.runtime.release(METADATA_LANE)
    stores.runtime.run()
    for pending in pendings:
        pending.result()
    assert commits == 2
    assert len(stores.found().values) == 50


def test_changes_take_effect_in_their_order(stores: Stores) -> None:
    store = stores.opened()
    for n in range(30):
        store.submit([PutValue("a", str(n))])
        if n % 7 == 0:
            stores.runtime.step()
    stores.runtime.run()
    assert stores.found().values == {"a": "29"}


def test_a_change_that_the_database_refuses_fails_alone_and_whole(stores: Stores) -> None:
    store = stores.opened()
    good = store.submit([PutValue("before", "x")])
    bad = store.submit([PutValue("half", "x"), PutValue("not text", "\ud800")])
    more = store.submit([PutValue("after", "x")])
    stores.runtime.run()
    good.result()
    more.result()
    with pytest.raises(MetadataFailed):
        bad.result()
    later = store.submit([PutValue("later", "x")])
    stores.runtime.run()
    later.result()
    assert set(stores.found().values) == {"before", "after", "later"}


def test_a_locked_database_fails_and_comes_back(stores: Stores) -> None:
    store = stores.opened()
    event.listen(store._engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=0"))
    store._engine.dispose()
    other = sqlite3.connect(stores.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pending = store.submit([PutValue("a", "1")])
    stores.runtime.run()
    with pytest.raises(MetadataFailed, match="locked"):
        pending.result()
    other.execute("ROLLBACK")
    other.close()
    stores.submit(PutValue("a", "2"))
    assert stores.found().values == {"a": "2"}


def test_a_file_that_is_no_database_is_told(stores: Stores) -> None:
    stores.path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(MetadataFailed, match="not a database"):
        stores.opened()


def test_a_commit_is_durable(stores: Stores) -> None:
    store = stores.opened()
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_of_offsets_committed_together_the_last_counts(stores: Stores) -> None:
    first, second, third = (CommittedOffset(offset, 0, "", 1) for offset in (1, 2, 3))
    place = "g", ORDERS.id, 0
    other = "g", ORDERS.id, 1
    stores.submit(PutOffset(*place, third))
    stores.submit(PutOffset(*place, first), PutOffset(*other, first), PutOffset(*place, second))
    assert stores.found().offsets == {place: second, other: first}
    stores.submit(PutOffset(*place, third), DeleteOffsets(*place), PutOffset(*other, third), DeleteOffsets("h"))
    assert stores.found().offsets == {other: third}


def test_a_fault_of_ours_fails_one_change_and_stops_no_other(stores: Stores) -> None:
    store = stores.opened()
    bad: Any = object()
    pendings = [store.submit([PutOffset("g", ORDERS.id, 0, bad)]), store.submit([PutValue("a", "b")])]
    stores.runtime.run()
    with pytest.raises(MetadataFailed, match="object"):
        pendings[0].result()
    pendings[1].result()
    assert stores.found().values == {"a": "b"}


def test_documents_last_until_they_are_deleted(stores: Stores) -> None:
    stores.submit(PutDocument("user", "ada", '{"id": 1}'), PutDocument("schema", "ada", "{}"))
    stores.submit(PutDocument("user", "ada", '{"id": 2}'), DeleteDocument("schema", "ada"))
    assert stores.found().documents == {("user", "ada"): '{"id": 2}'}


def test_a_subscription_keeps_what_is_acknowledged_behind_its_offset(stores: Stores) -> None:
    committed = CommittedOffset(4, -1, "", 7, acknowledged=b"\x01\x02", subscription=True)
    stores.submit(PutOffset("billing", ORDERS.id, 0, committed))
    assert stores.found().offsets == {("billing", ORDERS.id, 0): committed}


def test_a_database_of_an_earlier_version_gets_the_columns_it_lacks(stores: Stores) -> None:
    with sqlite3.connect(stores.path) as connection:
        connection.execute(
            "CREATE TABLE group_offsets (group_id VARCHAR NOT NULL, topic_id VARCHAR(36) NOT NULL,"
            " partition INTEGER NOT NULL, offset BIGINT NOT NULL, leader_epoch INTEGER NOT NULL,"
            " note TEXT NOT NULL, committed_ms BIGINT NOT NULL, PRIMARY KEY (group_id, topic_id, partition))"
        )
        connection.execute("INSERT INTO group_offsets VALUES ('g', ?, 0, 5, -1, '', 9)", (str(ORDERS.id),))
    assert stores.found().offsets == {("g", ORDERS.id, 0): CommittedOffset(5, -1, "", 9)}
