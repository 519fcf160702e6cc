"""Documents: seen at once, lasting once answered, taken back if they could not be kept."""

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import event

from millstream.broker.documents import Documents
from millstream.storage.metadata import CommittedOffset, MetadataFailed, MetadataStore, PutOffset, PutValue
from tests.support.simulated_runtime import SimulatedRuntime


def opened(runtime: SimulatedRuntime, path: Path) -> tuple[MetadataStore, Documents]:
    store = MetadataStore(runtime, f"sqlite:///{path}", durable=True)
    return store, Documents(store, store.load().documents)


def test_a_document_is_seen_at_once_and_after_a_restart(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    store, documents = opened(runtime, tmp_path / "metadata")
    users = documents.of_kind("user")
    put = documents.put("user", "ada", {"id": 1, "tags": ["a"]})
    assert users == {"ada": {"id": 1, "tags": ["a"]}}
    runtime.run()
    put.result()
    store.close()
    store, documents = opened(runtime, tmp_path / "metadata")
    assert documents.find("user", "ada") == {"id": 1, "tags": ["a"]}
    gone = documents.delete("user", "ada")
    assert documents.find("user", "ada") is None
    runtime.run()
    gone.result()
    store.close()
    assert opened(runtime, tmp_path / "metadata")[1].of_kind("user") == {}


def test_a_change_that_cannot_be_kept_is_taken_back(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    store, documents = opened(runtime, tmp_path / "metadata")
    documents.put("user", "ada", {"id": 1})
    runtime.run()
    event.listen(store._engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=0"))
    store._engine.dispose()
    with closing(sqlite3.connect(tmp_path / "metadata", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        changed, deleted = documents.put("user", "bob", {"id": 2}), documents.delete("user", "ada")
        runtime.run()
    for pending in (changed, deleted):
        with pytest.raises(MetadataFailed, match="locked"):
            pending.result()
    assert documents.of_kind("user") == {"ada": {"id": 1}}


def test_an_unknown_kind_is_empty(tmp_path: Path) -> None:
    _, documents = opened(SimulatedRuntime(), tmp_path / "metadata")
    assert documents.of_kind("nothing") == {}
    with pytest.raises(TypeError):
        documents.of_kind("nothing")["a"] = {}  # type: ignore[index]  # a view is not for changing


def test_of_changes_that_all_fail_none_is_left(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    store, documents = opened(runtime, tmp_path / "metadata")
    documents.put("user", "ada", {"id": 1})
    runtime.run()
    event.listen(store._engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=0"))
    store._engine.dispose()
    with closing(sqlite3.connect(tmp_path / "metadata", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        changes = [documents.put("user", "ada", {"id": 2}), documents.put("user", "bob", {"id": 3})]
        changes += [documents.put("user", "ada", {"id": 4}), documents.delete("user", "bob")]
        runtime.run()
    assert all(change.failed for change in changes)
    assert documents.of_kind("user") == {"ada": {"id": 1}}
    assert not documents._changing


def test_several_change_together_with_something_else(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    _, documents = opened(runtime, tmp_path / "metadata")
    documents.put("user", "ada", {"id": 1})
    runtime.run()
    changed = documents.change([("user", "ada", None), ("user", "bob", {"id": 2})], [PutValue("name", "value")])
    assert documents.of_kind("user") == {"bob": {"id": 2}}
    runtime.run()
    changed.result()
    store, again = opened(runtime, tmp_path / "metadata")
    assert again.of_kind("user") == {"bob": {"id": 2}}
    assert store.load().values["name"] == "value"


def test_of_several_that_cannot_all_be_made_none_is(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    store, documents = opened(runtime, tmp_path / "metadata")
    documents.put("user", "ada", {"id": 1})
    runtime.run()
    impossible = PutOffset("g", UUID(int=1), 2**70, CommittedOffset(0, -1, "", 0))
    changed = documents.change([("user", "ada", {"id": 2}), ("user", "bob", {"id": 3})], [impossible])
    runtime.run()
    with pytest.raises(MetadataFailed):
        changed.result()
    assert documents.of_kind("user") == {"ada": {"id": 1}}
    assert {key: value for key, value in store.load().documents.items() if key[0] == "user"} == {
        ("user", "ada"): '{"id": 1}'
    }
