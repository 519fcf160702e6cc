"""The options of the Spark source, without Spark."""

import pytest

from millstream.spark.errors import BadOption
from millstream.spark.read.options import Direct, ReadOptions
from millstream.spark.read.schema import COLUMNS

_GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def test_what_holds_if_nothing_is_said() -> None:
    options = ReadOptions.of(_GIVEN)
    assert options.topics == ("orders",)
    assert options.start is None
    assert options.end == "latest"
    assert options.columns == COLUMNS
    assert options.fails_on_data_loss
    assert options.direct is Direct.AUTO
    assert options.for_batch() is options
    assert options.for_stream() is options


def test_names_count_without_case() -> None:
    options = ReadOptions.of(
        {**_GIVEN, "STARTINGOFFSETS": "Earliest", "maxoffsetspertrigger": "7", "Columns": "VALUE"}
    )
    assert options.start == "earliest"
    assert options.max_offsets_per_trigger == 7
    assert options.columns == ("value",)


def test_headers_are_added_to_a_choice_of_columns() -> None:
    assert ReadOptions.of({**_GIVEN, "columns": "offset", "includeHeaders": "true"}).columns == ("offset", "headers")


def test_offsets_by_partition() -> None:
    options = ReadOptions.of({**_GIVEN, "startingOffsets": '{"orders": {"0": 23, "1": -2}}'})
    assert options.start == {"orders": {0: 23, 1: -2}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.bootstrap.servers": ""}, "the option kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "localhost"}, "kafka.bootstrap.servers takes HOST:PORT, not 'localhost'"),
        ({"kafka.bootstrap.servers": "localhost:70000"}, "takes HOST:PORT, not 'localhost:70000'"),
        ({"subscribe": ""}, "the option subscribe is missing"),
        ({"subscribe": ","}, "subscribe takes topics separated by commas, each once"),
        ({"subscribe": "a,a"}, "subscribe takes topics separated by commas, each once"),
        ({"startingOffsets": "soon"}, "startingOffsets takes earliest, latest or JSON"),
        ({"startingOffsets": '{"orders": 1}'}, "startingOffsets takes earliest, latest or JSON"),
        ({"endingOffsets": '{"other": {"0": 1}}'}, "endingOffsets must name the topics of subscribe"),
        ({"endingOffsets": '{"orders": {"0": -3}}'}, "endingOffsets: an offset is 0 or more"),
        ({"maxOffsetsPerTrigger": "-1"}, "maxOffsetsPerTrigger takes a whole number above 0, not '-1'"),
        ({"minPartitions": "0"}, "minPartitions takes a whole number above 0, not '0'"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is true or false, not 'no'"),
        ({"columns": "value,value"}, "columns takes some of key, value, topic"),
        ({"columns": "colour"}, "columns takes some of key, value, topic"),
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
    ],
)
def test_what_a_batch_cannot_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        ReadOptions.of({**_GIVEN, **options}).for_batch()


def test_a_stream_has_no_end() -> None:
    options = ReadOptions.of({**_GIVEN, "endingOffsets": '{"orders": {"0": 5}}'})
    with pytest.raises(BadOption, match="endingOffsets is for batches"):
        options.for_stream()
