"""Errors of the Spark source, each with a message of one line that names what to change.

    SparkSourceError
    ├── BadOption            an option is missing, unknown or makes no sense
    ├── BrokerUnreachable    nobody answers at kafka.bootstrap.servers, or not as a Kafka broker does
    ├── TopicMissing         a topic of the option subscribe does not exist (any more)
    ├── DataLost             records that should be read are gone, see the option failOnDataLoss
    ├── DirectReadImpossible direct=always, and the broker's data directory is not here
    └── MalformedRecords     a stored batch holds what is no record

They cross from Python workers to Spark as text; Spark puts a traceback before it.
"""

from millstream.model.errors import MillstreamError

__all__ = [
    "BadOption",
    "BrokerUnreachable",
    "DataLost",
    "DirectReadImpossible",
    "MalformedRecords",
    "SparkSourceError",
    "TopicMissing",
]


class SparkSourceError(MillstreamError):
    """Base of the errors of this package."""


class BadOption(SparkSourceError):
    """An option is missing, unknown or makes no sense."""


class BrokerUnreachable(SparkSourceError):
    """Nobody answers at the broker's address, or the answer is not Kafka's."""


class TopicMissing(SparkSourceError):
    """A topic or partition does not exist."""


class DataLost(SparkSourceError):
    """Records that should be read are not in the log any more."""


class DirectReadImpossible(SparkSourceError):
    """The broker's data directory cannot be read from here, and the option direct forbids to read otherwise."""


class MalformedRecords(SparkSourceError):
    """A stored batch cannot be taken apart."""
