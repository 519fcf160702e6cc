"""What Spark computes of the pipeline's tables: pure functions from tables to tables.

Each begins and ends with a select, so that what it needs and what it gives can be read off it.
"""

from typing import Any, Final

from pyspark.sql import functions as F

__all__ = [
    "LATE_MINUTES",
    "WEATHER_CONDITIONS",
    "delays_by_carrier",
    "delays_by_conditions",
    "delays_by_hour",
    "faults",
    "with_weather",
]

LATE_MINUTES: Final = 15
"""A flight counts as late from so many minutes on, as the US Department of Transportation counts."""

WEATHER_CONDITIONS: Final = (
    "dry and clear",
    "dry, visibility under 10 mi",
    "light rain or snow",
    "heavy rain or snow",
    "visibility under 2 mi",
)
"""What `delays_by_conditions` tells apart, the worst last."""


def with_weather(flights: Any, weather: Any) -> Any:
    """Each flight with the weather at its airport in the hour of its departure, null where there is no reading."""
    # The weather of a year fits into memory many times over, so the flights need not be shuffled.
    joined = flights.join(F.broadcast(weather), on=["origin", "time_hour"], how="left")
    return joined.select(
        "time_hour",
        "hour",
        "carrier",
        "flight",
        "tailnum",
        "origin",
        "dest",
        "distance",
        "dep_delay",
        "arr_delay",
        F.col("dep_delay").isNull().alias("cancelled"),
        "temperature_f",
        "wind_mph",
        "precipitation_in",
        "visibility_mi",
    )


def delays_by_carrier(flights: Any) -> Any:
    """How late the flights of each carrier leave, the worst first."""
    return _delays(flights, F.col("carrier")).orderBy(F.desc("late_percent"), "carrier")


def delays_by_hour(flights: Any) -> Any:
    """How late flights leave by the hour that they are planned for, local time."""
    return _delays(flights, F.col("hour")).orderBy("hour")


def delays_by_conditions(flights: Any) -> Any:
    """How late flights leave by the weather, those without a reading left out; one of WEATHER_CONDITIONS each."""
    clear, hazy, light, heavy, dense = WEATHER_CONDITIONS
    visibility, precipitation = F.col("visibility_mi"), F.col("precipitation_in")
    conditions = (
        F.when(visibility < 2, dense)
        .when(precipitation >= 0.1, heavy)
        .when(precipitation > 0, light)
        .when(visibility < 10, hazy)
        .otherwise(clear)
        .alias("conditions")
    )
    known = flights.where(visibility.isNotNull() & precipitation.isNotNull())
    return _delays(known, conditions)


def faults(quarantine: Any) -> Any:
    """How many records did not decode, by topic and reason."""
    return (
        quarantine.select("topic", "reason")
        .groupBy("topic", "reason")
        .agg(F.count("*").alias("records"))
        .orderBy("topic", F.desc("records"), "reason")
    )


def _delays(flights: Any, group: Any) -> Any:
    """Flights, delays and cancellations by a column."""
    is_late = (F.col("dep_delay") >= LATE_MINUTES).cast("int")
    return (
        flights.select(group, "dep_delay", "cancelled")
        .groupBy(flights.select(group).columns[0])
        .agg(
            F.count("*").alias("flights"),
            F.avg("dep_delay").alias("mean_delay_minutes"),
            (F.avg(is_late) * 100).alias("late_percent"),
            (F.avg(F.col("cancelled").cast("int")) * 100).alias("cancelled_percent"),
        )
    )
