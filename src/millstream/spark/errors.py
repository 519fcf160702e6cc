"""Errors of the Spark source, each with a message of one line that names what to change.

    SparkSourceError
    ├── AccessDenied         a broker with ACLs does not let the user do what is wanted
    ├── AuthenticationFailed a broker does not let one in, or its certificate is not trusted
    ├── BadOption            an option is missing, unknown or makes no sense
    ├── BadSchema            a schema of values is none, has no columns in Spark, or is not registered
    ├── BrokerUnreachable    nobody answers at kafka.bootstrap.servers, or not as a Kafka broker does
    ├── CommitRefused        a group does not take the positions that are to be shown under its name
    ├── TopicMissing         a topic of the option subscribe does not exist (any more)
    ├── DataLost             records that should be read are gone, see the option failOnDataLoss
    ├── DirectReadImpossible direct=always, and the broker's data directory is not here
    ├── MalformedRecords     a stored batch holds what is no record
    ├── UnwritableRow        a row of a table cannot become a record of a topic
    ├── WriteRefused         a broker does not take what is written to a topic
    │   └── TransactionLost  a transaction has ended otherwise than it was to
    ├── PublicationLost      a micro-batch was published in part, and the rest is gone: only a human can go on
    ├── TableError           a table cannot be read or written
    │   ├── TableMissing     there is none at the option path
    │   ├── SchemaMismatch   rows do not fit into the columns of the table
    │   ├── StaleBatch       a micro-batch comes that the table is already beyond: the checkpoint is of another time
    │   └── TableContended   others have changed the table again and again while it was to be changed
    ├── JobError             a job on the log cannot go on
    └── PipelineError        a pipeline cannot be read, checked or run
        ├── UnsafePipeline   its definitions could lose or double rows
        └── PipelineBusy     another process runs it

They cross from Python workers to Spark as text; Spark puts a traceback before it.
"""

from millstream.model.errors import MillstreamError

__all__ = [
    "AccessDenied",
    "AuthenticationFailed",
    "BadOption",
    "BadSchema",
    "BrokerUnreachable",
    "CommitRefused",
    "DataLost",
    "DirectReadImpossible",
    "JobError",
    "MalformedRecords",
    "PipelineBusy",
    "PipelineError",
    "PublicationLost",
    "SchemaMismatch",
    "SparkSourceError",
    "StaleBatch",
    "TableContended",
    "TableError",
    "TableMissing",
    "TopicMissing",
    "TransactionLost",
    "UnsafePipeline",
    "UnwritableRow",
    "WriteRefused",
]


class SparkSourceError(MillstreamError):
    """Base of the errors of this package."""


class AccessDenied(SparkSourceError):
    """A broker does not let the user do what is wanted: a right is missing."""


class AuthenticationFailed(SparkSourceError):
    """A broker does not take the credentials or the certificate it is shown, or its own is not trusted."""


class BadOption(SparkSourceError):
    """An option is missing, unknown or makes no sense."""


class BadSchema(SparkSourceError):
    """A schema of values is none, has no columns in Spark, or is not registered."""


class BrokerUnreachable(SparkSourceError):
    """Nobody answers at the broker's address, or the answer is not Kafka's."""


class CommitRefused(SparkSourceError):
    """A group has members of its own, or may not be written."""


class TopicMissing(SparkSourceError):
    """A topic or partition does not exist."""


class DataLost(SparkSourceError):
    """Records that should be read are not in the log any more."""


class DirectReadImpossible(SparkSourceError):
    """The broker's data directory cannot be read from here, and the option direct forbids to read otherwise."""


class MalformedRecords(SparkSourceError):
    """A stored batch cannot be taken apart."""


class UnwritableRow(SparkSourceError):
    """A row of a table cannot become a record of a topic."""


class WriteRefused(SparkSourceError):
    """A broker does not take what is written to a topic."""


class TransactionLost(WriteRefused):
    """A transaction has been aborted by the broker or by another producer, or is not known any more."""


class PublicationLost(SparkSourceError):
    """A micro-batch was published in part, and the rest of it is gone."""


class TableError(SparkSourceError):
    """A table cannot be read or written."""


class TableMissing(TableError):
    """There is no table at the option path."""


class SchemaMismatch(TableError):
    """Rows do not fit into the columns of the table."""


class StaleBatch(TableError):
    """A micro-batch comes that the table is already beyond."""


class TableContended(TableError):
    """Others have changed the table again and again while it was to be changed."""


class JobError(SparkSourceError):
    """A job on the log cannot go on."""


class PipelineError(SparkSourceError):
    """A pipeline cannot be read, checked or run.

    Args:
        what: what is wrong, without a final full stop.
        remedy: what to do about it, as an instruction.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


class UnsafePipeline(PipelineError):
    """The definitions of a pipeline, or what is asked of it, could lose or double rows."""


class PipelineBusy(PipelineError):
    """Another process runs this pipeline."""
