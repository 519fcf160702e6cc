"""The transforms of the demo on a few flights, and its data."""

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from examples.flights import chart, job, load, senders
from millstream.spark.tables import live_files

_CLEAR = {"precipitation_in": 0.0, "visibility_mi": 10.0}
_FLIGHT = {
    "carrier": "UA",
    "flight": 1,
    "origin": "EWR",
    "hour": 5,
    "time_hour": "2013-01-01T10:00:00Z",
    "dep_delay": 2.0,
    "tailnum": "N1",
    "dest": "IAH",
    "distance": 1400,
    "arr_delay": None,
}


_FLIGHTS = (
    "time_hour TIMESTAMP, hour INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "distance INT, dep_delay DOUBLE, arr_delay DOUBLE"
)
_WEATHER = (
    "time_hour TIMESTAMP, origin STRING, temperature_f DOUBLE, wind_mph DOUBLE, precipitation_in DOUBLE, "
    "visibility_mi DOUBLE"
)


def _table(spark: Any, rows: list[dict[str, Any]], schema: str) -> Any:
    """A table as the pipeline makes it."""
    names = [column.split()[0] for column in schema.split(", ")]
    values = [[row[name] for name in names] for row in rows]
    for row in values:
        row[0] = datetime.fromisoformat(row[0])
    return spark.createDataFrame(values, schema)


def _weather(**fields: Any) -> dict[str, Any]:
    return {
        "origin": "EWR",
        "time_hour": "2013-01-01T10:00:00Z",
        "temperature_f": 39.0,
        "wind_mph": 10.4,
        **_CLEAR,
        **fields,
    }


def _joined(spark: Any, flights: list[dict[str, Any]], weather: list[dict[str, Any]]) -> Any:
    return job.with_weather(_table(spark, flights, _FLIGHTS), _table(spark, weather, _WEATHER))


def test_a_flight_gets_the_weather_of_its_airport_and_hour(spark: Any) -> None:
    flights = [_FLIGHT, {**_FLIGHT, "origin": "JFK"}, {**_FLIGHT, "dep_delay": None}]
    weather = [_weather(), _weather(origin="JFK", time_hour="2013-01-01T11:00:00Z")]
    rows = _joined(spark, flights, weather).orderBy("origin", "cancelled").collect()
    assert [(row.origin, row.cancelled, row.temperature_f, row.visibility_mi) for row in rows] == [
        ("EWR", False, 39.0, 10.0),
        ("EWR", True, 39.0, 10.0),
        ("JFK", False, None, None),
    ]
    assert rows[0].time_hour == datetime(2013, 1, 1, 10)
    assert (rows[0].carrier, rows[0].flight, rows[0].distance, rows[0].arr_delay) == ("UA", 1, 1400, None)


def test_delays_by_carrier_and_by_hour(spark: Any) -> None:
    delays = [("UA", 5, 14.0), ("UA", 5, 15.0), ("UA", 6, None), ("AA", 6, -1.0)]
    flights = [{**_FLIGHT, "carrier": carrier, "hour": hour, "dep_delay": delay} for carrier, hour, delay in delays]
    table = _joined(spark, flights, [_weather()])
    united, american = job.delays_by_carrier(table).collect()
    assert (united.carrier, united.flights, united.mean_delay_minutes, united.late_percent) == ("UA", 3, 14.5, 50.0)
    assert united.cancelled_percent == pytest.approx(100 / 3)
    assert (american.carrier, american.late_percent, american.cancelled_percent) == ("AA", 0.0, 0.0)
    assert [(row.hour, row.flights) for row in job.delays_by_hour(table).collect()] == [(5, 2), (6, 2)]


def test_the_worst_of_the_weather_counts(spark: Any) -> None:
    readings: list[tuple[dict[str, Any], str | None]] = [
        ({}, "dry and clear"),
        ({"visibility_mi": 9.0}, "dry, visibility under 10 mi"),
        ({"precipitation_in": 0.01}, "light rain or snow"),
        ({"precipitation_in": 0.1, "visibility_mi": 5.0}, "heavy rain or snow"),
        ({"precipitation_in": 0.5, "visibility_mi": 1.0}, "visibility under 2 mi"),
        ({"precipitation_in": None}, None),
    ]
    times = [f"2013-01-01T{hour:02}:00:00Z" for hour in range(len(readings))]
    weather = [_weather(time_hour=time, **fields) for time, (fields, _) in zip(times, readings, strict=True)]
    flights = [{**_FLIGHT, "time_hour": time} for time in times]
    rows = job.delays_by_conditions(_joined(spark, flights, weather)).collect()
    assert {row.conditions for row in rows} == {name for _, name in readings if name} == set(job.WEATHER_CONDITIONS)
    assert all(row.flights == 1 for row in rows)


def test_the_data_is_what_it_should_be() -> None:
    row = next(load.FLIGHTS.rows())
    assert (row.key, row.time_ms, row.origin) == ("UA1545", 1357034400000, "EWR")
    first = json.loads(row.value)
    assert (first["dep_time"], first["tailnum"], first["time_hour"]) == (517, "N14228", "2013-01-01T10:00:00Z")
    rows = list(load.WEATHER.rows())
    weather = [json.loads(row.value) for row in rows]
    assert len(weather) == load.WEATHER.records
    assert Counter(row["origin"] for row in weather) == Counter(row.origin for row in rows)
    assert {row.origin for row in rows} == {"EWR", "JFK", "LGA"}
    assert weather[0]["wind_gust"] is None
    assert load.carrier_names()["UA"] == "United Air Lines Inc."


def test_every_thousandth_record_is_broken_in_one_of_three_ways() -> None:
    rows = list(itertools.islice(load.WEATHER.rows(), 3 * senders.FAULT_EVERY))
    sent = list(senders.with_faults(rows))
    faults = sent[senders.FAULT_EVERY :: senders.FAULT_EVERY + 1]
    assert len(sent) - len(rows) == len(faults) == 3
    assert [row for row in sent if row not in faults] == rows
    for row in faults[:2]:
        with pytest.raises(ValueError, match=r"Unterminated|Expecting|Invalid"):
            json.loads(row.value)
    assert json.loads(faults[2].value)["temp"] == "warm"


def test_every_record_has_one_way() -> None:
    for source in (load.FLIGHTS, load.WEATHER):
        origins = [origin for way in senders.WAYS if way.topic == source.topic for origin in way.origins]
        assert sorted(origins) == ["EWR", "JFK", "LGA"]


def test_the_chart(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("chart") / "delays.png")
    table = _joined(spark, [_FLIGHT, {**_FLIGHT, "hour": 6, "dep_delay": 40.0}], [_weather()])
    hours, carriers = job.delays_by_hour(table).collect(), job.delays_by_carrier(table).collect()
    chart.draw(hours, carriers, job.delays_by_conditions(table).collect(), {"UA": "United"}, path)
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert os.path.getsize(path) > 20_000


@pytest.mark.timeout(900)
def test_the_demo_from_start_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "examples/flights/demo.py", "--output", str(tmp_path), "--flights", "6000"]
    result = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=850, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("✓")] == [
        "start",
        "read",
        "send",
        "start",
        "load",
        "run",
        "join",
        "draw",
        "stop",
    ]
    tables = tmp_path / "pipeline" / "tables"
    counts = {
        path.name: sum(pq.read_metadata(file).num_rows for file in live_files(str(path))) for path in tables.iterdir()
    }
    sent = {"flights": list(itertools.islice(load.FLIGHTS.rows(), 6000)), "weather": list(load.WEATHER.rows())}
    faults = sum(
        sum(row.origin in way.origins for row in sent[way.topic]) // senders.FAULT_EVERY for way in senders.WAYS
    )
    assert counts == {"flights": 6000, "weather": load.WEATHER.records, "quarantine": faults}
    assert pq.read_table(tmp_path / "departures.parquet").num_rows == 6000
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")
