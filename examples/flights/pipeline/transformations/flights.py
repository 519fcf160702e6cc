"""The topics `flights` and `weather` as tables of those names, and what does not decode as the table `quarantine`.

Who wrote a record does not matter: the topics' writers speak Kafka, Kafka 0.7, Pulsar and Iggy.
"""

# mypy: disable-error-code="untyped-decorator"

from pathlib import Path
from typing import Any

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from millstream.spark.values import Decoded, decode

spark = SparkSession.active()
BROKER = spark.conf.get("spark.flights.broker")
TABLES = Path.cwd() / "tables"
FLIGHT = (
    "time_hour TIMESTAMP, hour INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "distance INT, dep_delay DOUBLE, arr_delay DOUBLE"
)
WEATHER = "time_hour TIMESTAMP, origin STRING, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE"

dp.create_sink("flights", "millstream-table", {"path": f"{TABLES}/flights", "partitionBy": "origin"})
dp.create_sink("weather", "millstream-table", {"path": f"{TABLES}/weather", "tableFormat": "delta"})
dp.create_sink("quarantine", "millstream-table", {"path": f"{TABLES}/quarantine"})


def decoded(topic: str, schema: str) -> Decoded:
    """The good and the bad records of a topic."""
    records = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", BROKER)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    return decode(records, format="json", schema=schema)


# Flows may not look at the columns of a stream, as decode() does: so this is done here.
flights, weather = decoded("flights", FLIGHT), decoded("weather", WEATHER)


@dp.append_flow(target="flights")
def good_flights() -> Any:
    return flights.good.select("value.*")


@dp.append_flow(target="weather")
def good_weather() -> Any:
    return weather.good.selectExpr(
        "value.time_hour",
        "value.origin",
        "value.temp AS temperature_f",
        "value.wind_speed AS wind_mph",
        "value.precip AS precipitation_in",
        "value.visib AS visibility_mi",
    )


@dp.append_flow(target="quarantine")
def bad_flights() -> Any:
    return flights.bad


@dp.append_flow(target="quarantine")
def bad_weather() -> Any:
    return weather.bad
