"""The options of the sink: what each means, and what is said of those that make no sense."""

import pytest

from millstream.spark.errors import BadOption
from millstream.spark.write.options import Delivery, WriteOptions
from millstream.spark.write.partitioners import Partitioner
from millstream.wire.compression import Codec

_SERVERS = {"kafka.bootstrap.servers": "a:1,b:2"}


def test_defaults() -> None:
    options = WriteOptions.of(_SERVERS)
    assert options.topic is None
    assert options.partitioner is Partitioner.MURMUR2_RANDOM
    assert options.delivery is Delivery.EXACTLY_ONCE
    assert options.codec is Codec.NONE
    assert (options.batch_bytes, options.transaction_timeout_ms, options.patience_s) == (524_288, 900_000, 120)


def test_names_count_without_case_and_what_spark_adds_is_let_through() -> None:
    options = WriteOptions.of(
        {
            **_SERVERS,
            "TOPIC": " orders ",
            "Partitioner": "Consistent",
            "kafka.compression.type": "LZ4",
            "kafka.batch.size": "1000",
            "kafka.acks": "all",
            "applicationid": "x",
            "checkpointLocation": "/c",
            "queryName": "q",
        }
    )
    assert (options.topic, options.codec, options.batch_bytes) == ("orders", Codec.LZ4, 1000)
    assert (options.partitioner, options.application_id) == (Partitioner.CONSISTENT, "x")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "broker"}, "kafka.bootstrap.servers takes HOST:PORT, not 'broker'"),
        ({"subscribe": "x"}, "no option 'subscribe' for writing; there are kafka.bootstrap.servers, kafka.security"),
        ({"topic": " "}, "option topic is empty"),
        ({"partitioner": "md5"}, "partitioner is one of murmur2_random, .* not 'md5'"),
        ({"delivery": "twice"}, "delivery is one of exactly-once, at-least-once, not 'twice'"),
        ({"kafka.compression.type": "rar"}, "kafka.compression.type is one of none, gzip, snappy, lz4, zstd"),
        ({"kafka.batch.size": "0"}, "kafka.batch.size takes a whole number from 1 to 67108864, not '0'"),
        ({"kafka.acks": "1"}, "kafka.acks is always all, not '1'"),
        ({"kafka.transaction.timeout.ms": "soon"}, "kafka.transaction.timeout.ms takes a whole number"),
        ({"applicationId": "a\nb"}, "applicationId takes 1 to 200 printable characters"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        WriteOptions.of({**_SERVERS, **given})


def test_what_names_a_batch() -> None:
    both = WriteOptions.of({**_SERVERS, "applicationId": "load", "batchId": "20260101"})
    assert both.for_batch().batch_id == 20_260_101
    with pytest.raises(BadOption, match="applicationId and batchId go together"):
        WriteOptions.of({**_SERVERS, "applicationId": "load"}).for_batch()
    with pytest.raises(BadOption, match="batchId is for delivery=exactly-once"):
        WriteOptions.of(
            {**_SERVERS, "applicationId": "load", "batchId": "1", "delivery": "at-least-once"}
        ).for_batch()
    with pytest.raises(BadOption, match="batchId is for tables that are not streams"):
        both.for_stream()
