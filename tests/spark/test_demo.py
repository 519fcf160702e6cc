"""The transforms of the demo on a few flights, and its data."""

import itertools
import json
import os
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from examples.flights import chart, job, load

_CLEAR = {"precip": 0.0, "visib": 10.0}
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


def _records(spark: Any, values: list[dict[str, Any]]) -> Any:
    """A topic's records with these values."""
    return spark.createDataFrame([(json.dumps(value).encode(),) for value in values], "value binary")


def _weather(**fields: Any) -> dict[str, Any]:
    return {
        "origin": "EWR",
        "time_hour": "2013-01-01T10:00:00Z",
        "temp": 39.0,
        "wind_speed": 10.4,
        **_CLEAR,
        **fields,
    }


def _joined(spark: Any, flights: list[dict[str, Any]], weather: list[dict[str, Any]]) -> Any:
    return job.with_weather(job.flights_of(_records(spark, flights)), job.weather_of(_records(spark, weather)))


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
        ({"visib": 9.0}, "dry, visibility under 10 mi"),
        ({"precip": 0.01}, "light rain or snow"),
        ({"precip": 0.1, "visib": 5.0}, "heavy rain or snow"),
        ({"precip": 0.5, "visib": 1.0}, "visibility under 2 mi"),
        ({"precip": None}, None),
    ]
    times = [f"2013-01-01T{hour:02}:00:00Z" for hour in range(len(readings))]
    weather = [_weather(time_hour=time, **fields) for time, (fields, _) in zip(times, readings, strict=True)]
    flights = [{**_FLIGHT, "time_hour": time} for time in times]
    rows = job.delays_by_conditions(_joined(spark, flights, weather)).collect()
    assert {row.conditions for row in rows} == {name for _, name in readings if name} == set(job.WEATHER_CONDITIONS)
    assert all(row.flights == 1 for row in rows)


def test_the_data_is_what_it_should_be(spark: Any) -> None:
    key, value, time_ms = next(load.FLIGHTS.rows())
    assert (key, time_ms) == ("UA1545", 1357034400000)
    first = json.loads(value)
    assert (first["dep_time"], first["tailnum"], first["time_hour"]) == (517, "N14228", "2013-01-01T10:00:00Z")
    weather = [json.loads(value) for _, value, _ in load.WEATHER.rows()]
    assert len(weather) == load.WEATHER.records
    assert Counter(row["origin"] for row in weather).keys() == {"EWR", "JFK", "LGA"}
    assert weather[0]["wind_gust"] is None
    first_flights = [json.loads(value) for _, value, _ in itertools.islice(load.FLIGHTS.rows(), 500)]
    table = _joined(spark, first_flights, [row for row in weather if row["time_hour"] < "2013-01-03"])
    assert [row.visibility_mi is not None for row in table.collect()].count(True) > 450
    assert load.carrier_names()["UA"] == "United Air Lines Inc."


def test_the_chart(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("chart") / "delays.png")
    table = _joined(spark, [_FLIGHT, {**_FLIGHT, "hour": 6, "dep_delay": 40.0}], [_weather()])
    hours, carriers = job.delays_by_hour(table).collect(), job.delays_by_carrier(table).collect()
    chart.draw(hours, carriers, job.delays_by_conditions(table).collect(), {"UA": "United"}, path)
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert os.path.getsize(path) > 20_000
