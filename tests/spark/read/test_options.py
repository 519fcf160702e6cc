"""The options of the Spark source, without Spark."""

import re

import pytest

from millstream.spark.errors import BadOption
from millstream.spark.read.options import Direct, Limits, ReadOptions
from millstream.spark.read.schema import COLUMNS
from millstream.spark.read.selection import Selection

_GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def test_what_holds_if_nothing_is_said() -> None:
    options = ReadOptions.of(_GIVEN)
    assert options.selection.names == ("orders",)
    assert options.start is None
    assert options.end is None
    assert options.limits == Limits()
    assert options.patience_s == 60
    assert options.columns == COLUMNS
    assert options.fails_on_data_loss
    assert options.direct is Direct.AUTO
    assert options.for_batch() is options
    assert options.for_stream() is options


def test_names_count_without_case() -> None:
    options = ReadOptions.of(
        {**_GIVEN, "STARTINGOFFSETS": "Earliest", "maxoffsetspertrigger": "7", "Columns": "VALUE"}
    )
    assert options.start is not None
    assert options.start.offsets == "earliest"
    assert options.limits.rows_max == 7
    assert options.columns == ("value",)


def test_headers_are_added_to_a_choice_of_columns() -> None:
    assert ReadOptions.of({**_GIVEN, "columns": "offset", "includeHeaders": "true"}).columns == ("offset", "headers")


def test_offsets_by_partition() -> None:
    options = ReadOptions.of({**_GIVEN, "startingOffsets": '{"orders": {"0": 23, "1": -2}}'})
    assert options.start is not None
    assert options.start.offsets == {"orders": {0: 23, 1: -2}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.bootstrap.servers": ""}, "the option kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "localhost"}, "kafka.bootstrap.servers takes HOST:PORT, not 'localhost'"),
        ({"kafka.bootstrap.servers": "localhost:70000"}, "takes HOST:PORT, not 'localhost:70000'"),
        ({"subscribe": ""}, "the option subscribe is missing"),
        ({"assign": '{"orders": [0]}'}, "exactly one of subscribe, subscribePattern and assign"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp takes milliseconds since 1970, not 'yesterday'"),
        ({"startingOffsetsByTimestamp": "5"}, 'startingOffsetsByTimestamp takes {"topic": {"0": 1700000000000}}'),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "milliseconds since 1970, none below 0"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "Strategy is error or latest, not 'earliest'"),
        ({"startingGroup": "g", "startingTimestamp": "5"}, "startingGroup and startingTimestamp both say where"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger of 9 is more than"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay takes a time such as 500ms, 90s or 15m, not 'soon'"),
        ({"maxBytesPerTrigger": "1k"}, "maxBytesPerTrigger takes a whole number above 0, not '1k'"),
        ({"kafka.isolation.level": "read_uncommitted"}, "kafka.isolation.level can only be read_committed"),
        ({"subscribe": ","}, "subscribe takes topics separated by commas, each once"),
        ({"subscribe": "a,a"}, "subscribe takes topics separated by commas, each once"),
        ({"startingOffsets": "soon"}, "startingOffsets takes earliest, latest or JSON"),
        ({"startingOffsets": '{"orders": 1}'}, "startingOffsets takes earliest, latest or JSON"),
        ({"endingOffsets": '{"other": {"0": 1}}'}, "endingOffsets must name the topics of subscribe"),
        ({"endingOffsets": '{"orders": {"0": -3}}'}, "endingOffsets: an offset is 0 or more"),
        ({"maxOffsetsPerTrigger": "-1"}, "maxOffsetsPerTrigger takes a whole number above 0, not '-1'"),
        ({"minPartitions": "0"}, "minPartitions takes a whole number above 0, not '0'"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is true or false, not 'no'"),
        ({"columns": "value,value"}, "columns takes * and some of key, value, topic"),
        ({"columns": "colour"}, "columns takes * and some of key, value, topic"),
        ({"direct": "sometimes"}, "direct is one of auto, always, never"),
        ({"startingOffset": "earliest"}, "there is no option 'startingOffset'; there are kafka.bootstrap.servers"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as raised:
        ReadOptions.of({**_GIVEN, **options})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "a batch cannot begin at the latest offset"),
        ({"endingOffsets": "earliest"}, "a batch cannot end at the earliest offset"),
        ({"maxOffsetsPerTrigger": "1"}, "maxOffsetsPerTrigger is for streams"),
        ({"maxBytesPerTrigger": "1"}, "maxBytesPerTrigger is for streams"),
        ({"kafka.group.id": "g"}, r"kafka.group.id is for streams"),
    ],
)
def test_what_a_batch_cannot_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        ReadOptions.of({**_GIVEN, **options}).for_batch()


@pytest.mark.parametrize(
    "option",
    [
        {"endingOffsets": '{"orders": {"0": 5}}'},
        {"endingTimestamp": "5"},
        {"endingOffsetsByTimestamp": '{"orders": {"0": 5}}'},
    ],
)
def test_a_stream_has_no_end(option: dict[str, str]) -> None:
    options = ReadOptions.of({**_GIVEN, **option})
    with pytest.raises(BadOption, match=f"{next(iter(option))} is for batches"):
        options.for_stream()


def test_a_stream_may_say_that_it_ends_at_the_latest() -> None:
    options = ReadOptions.of({**_GIVEN, "endingOffsets": "latest"})
    assert options.for_stream() is options


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("250", 250), ("250ms", 250), ("90s", 90_000), ("15m", 900_000), ("2 h", 7_200_000)]
)
def test_times_have_units(text: str, expected_ms: int) -> None:
    assert ReadOptions.of({**_GIVEN, "maxTriggerDelay": text}).limits.delay_ms == expected_ms


def test_a_star_stands_for_the_usual_columns() -> None:
    assert ReadOptions.of({**_GIVEN, "columns": "*, protocol"}).columns == (*COLUMNS, "protocol")


def test_which_option_wins() -> None:
    by_offset = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 7}}'}
    start = ReadOptions.of({**_GIVEN, **by_offset}).start
    assert start is not None
    assert (start.option, start.times) == ("startingOffsetsByTimestamp", {"orders": {0: 7}})
    start = ReadOptions.of({**_GIVEN, **by_offset, "startingTimestamp": "9"}).start
    assert start is not None
    assert (start.option, start.times) == ("startingTimestamp", 9)


class TestSelection:
    """What is read."""

    def test_a_pattern(self) -> None:
        selection = Selection.of({"subscribePattern": "or.*s"})
        assert selection.admits("orders")
        assert not selection.admits("orders-2"), "whole names"
        assert selection.admits("orders", 17)

    def test_single_partitions(self) -> None:
        selection = Selection.of({"assign": '{"b": [2, 0], "a": [1]}'})
        assert selection.names == ("a", "b")
        assert selection.partitions == {"a": (1,), "b": (0, 2)}
        assert selection.admits("b", 2)
        assert not selection.admits("b", 1)
        assert not selection.admits("c")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "none is given"),
            ({"subscribePattern": "("}, "subscribePattern takes a regular expression, not '('"),
            ({"assign": "orders"}, "assign takes JSON such as"),
            ({"assign": "{}"}, "assign takes JSON such as"),
            ({"assign": '{"a": []}'}, "assign takes JSON such as"),
            ({"assign": '{"a": [0, 0]}'}, "each partition once"),
            ({"assign": '{"a": [-1]}'}, "assign takes JSON such as"),
        ],
    )
    def test_what_makes_no_sense(self, options: dict[str, str], message: str) -> None:
        with pytest.raises(BadOption, match=re.escape(message)):
            Selection.of(options)
