"""Archiving topics, and replaying what was archived: nothing is lost, doubled or changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.errors import BadOption, JobError, TableMissing, TopicMissing
from millstream.spark.jobs import archive, replay
from millstream.spark.tables import TableFormat, read_live
from tests.spark.conftest import Topics
from tests.spark.jobs.conftest import Rows, records_of
from tests.support.sample_records import samples
from tests.support.server_process import ServerProcess

FORMATS = ["parquet", "delta", "iceberg"]
COUNT = 12
"""Records that tell what can go wrong: the first of the samples."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_round_trip(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, tmp_path: Path, table_format: str
) -> None:
    topic = topics.create("archived", partitions=3)
    topics.write(topic, samples()[:150], compression_type="lz4")
    topics.write(topic, samples()[:COUNT], partition=2)
    topics.delete_before(topic, 3)
    table, job = os.fspath(tmp_path / "table"), os.fspath(tmp_path / "job")

    def run() -> Any:
        return archive(
            spark, servers=broker.kafka, topics=[topic], path=table, checkpoint=job, table_format=table_format,
            batch_rows=100,
        )  # fmt: skip

    end = run()
    assert (end.rows, end.batches, end.is_complete) == (147 + COUNT, 2, True)
    topics.write(topic, samples()[:5], partition=1)
    assert run().rows == 5, "it goes on where it was"
    archived = read_live(spark, table, TableFormat(table_format))
    assert records_of(archived) == held.of(topic), "offsets are recorded"
    assert {(row.topic, row.protocol) for row in archived.select("topic", "protocol").collect()} == {(topic, "kafka")}

    again = topics.create("replayed", partitions=4)
    end = replay(spark, path=table, servers=broker.kafka, checkpoint=f"{job}.replay", topic=again, batch_rows=300)
    assert (end.rows, end.batches, end.is_complete) == (152 + COUNT, 2, True)
    assert held.of(again, without_offsets=True) == held.of(topic, without_offsets=True)
    end = replay(spark, path=table, servers=broker.kafka, checkpoint=f"{job}.replay", topic=again, batch_rows=300)
    assert (end.rows, end.batches, end.is_complete) == (0, 0, True), "a job that is complete does nothing"


@pytest.fixture
def archived(spark: Any, broker: ServerProcess, topics: Topics, tmp_path: Path) -> tuple[str, list[str]]:
    """An archive of two topics: its path, and theirs."""
    names = [topics.create("several"), topics.create("several", partitions=2)]
    topics.write_numbers(names[0], range(5))
    topics.write_numbers(names[1], range(10, 15), partition=1)
    table = os.fspath(tmp_path / "several")
    archive(spark, servers=broker.kafka, topics=names, path=table, checkpoint=f"{table}.job")
    return table, names


@pytest.mark.timeout(600)
def test_an_archive_of_several_topics(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, archived: tuple[str, list[str]], tmp_path: Path
) -> None:
    table, names = archived
    job = os.fspath(tmp_path / "job")
    with pytest.raises(JobError, match=r"holds the topics several-.* would be mixed"):
        replay(spark, path=table, servers=broker.kafka, checkpoint=job, topic="any")
    made = f"{names[1]}-again"
    replay(
        spark, path=table, servers=broker.kafka, checkpoint=job, topic=made, source_topic=names[1],
        offset_header="was-at",
    )  # fmt: skip
    expected = [(*row[:4], (("was-at", b"%d" % row[1]),), row[5]) for row in held.of(names[1])]
    assert held.of(made) == expected
    assert topics.admin.list_topics(made).topics[made].partitions.keys() == {0, 1}, "a topic that is made has enough"

    before = [held.of(name, without_offsets=True) for name in names]
    replay(spark, path=table, servers=broker.kafka, checkpoint=f"{job}.all")
    for name, rows in zip(names, before, strict=True):
        assert sorted(held.of(name, without_offsets=True)) == sorted(rows * 2), "each goes to where it was"


@pytest.mark.timeout(300)
def test_what_cannot_be_archived_or_replayed(
    spark: Any, broker: ServerProcess, topics: Topics, archived: tuple[str, list[str]], tmp_path: Path
) -> None:
    table, names = archived
    job = os.fspath(tmp_path / "job")
    with pytest.raises(TopicMissing, match="there is no topic 'missing'"):
        archive(spark, servers=broker.kafka, topics=["missing"], path=table, checkpoint=job)
    with pytest.raises(TableMissing):
        replay(spark, path=os.fspath(tmp_path / "none"), servers=broker.kafka, checkpoint=job)
    with pytest.raises(BadOption, match="tableFormat is one of"):
        replay(spark, path=table, servers=broker.kafka, checkpoint=job, table_format="csv")
    with pytest.raises(JobError, match=r"whose path is .* name another directory"):
        archive(spark, servers=broker.kafka, topics=names, path=f"{table}2", checkpoint=f"{table}.job")
    other = os.fspath(tmp_path / "other")
    spark.range(3).write.format("millstream-table").option("path", other).mode("append").save()
    with pytest.raises(JobError, match="is no archive of topics: it has no column 'key'"):
        replay(spark, path=other, servers=broker.kafka, checkpoint=job)
    narrow = topics.create("narrow")
    with pytest.raises(JobError, match="has 1 partitions, and 2 are needed"):
        replay(
            spark, path=table, servers=broker.kafka, checkpoint=f"{job}.narrow", topic=narrow, source_topic=names[1]
        )
