"""Jobs on the log itself, each of which goes on where it was when it is run again with the same checkpoint.

They are called with a Spark session, or by `millstream job`.

    archive       topics into a table
    replay        the records of such a table back into topics
    backfill      a range of a topic into a table or a topic
    compaction    the latest record of every key into a topic
    copying       copies between brokers, and into another number of partitions
    running       how all of them run: as a stream, or piece by piece
    ranges        pieces
    state         what a job remembers
    topics        what there is to know of topics, and making them
    session       Spark for the command line
"""

from millstream.spark.jobs.archive import archive
from millstream.spark.jobs.backfill import backfill
from millstream.spark.jobs.compaction import compact
from millstream.spark.jobs.copying import copy, repartition
from millstream.spark.jobs.replay import replay
from millstream.spark.jobs.running import JobEnd, Sink, table_sink, topic_sink

__all__ = [
    "JobEnd",
    "Sink",
    "archive",
    "backfill",
    "compact",
    "copy",
    "repartition",
    "replay",
    "table_sink",
    "topic_sink",
]
