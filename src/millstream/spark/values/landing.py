"""Good rows and bad ones of the same micro-batch, each in a place of its own, each once."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from millstream.spark.errors import BadOption
from millstream.spark.values.decoding import Decoded

__all__ = ["land"]

_QUERY_ID: Final = "sql.streaming.queryId"
_TABLE: Final = "millstream-table"
_OWN: Final = {"applicationid", "batchid"}


def _query_id(batch: Any) -> str:
    try:
        return str(batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID))
    except AttributeError:
        # A session of Spark Connect knows of no context.
        raise BadOption("the id of the query is not told here; give land() an application_id") from None


def land(
    decoding: Callable[[Any], Decoded],
    *,
    good: Mapping[str, str],
    bad: Mapping[str, str],
    application_id: str | None = None,
) -> Callable[[Any, int], None]:
    """Make what `foreachBatch` takes: it decodes a micro-batch once, and writes its good rows and its bad rows.

    Both are written under the number of the micro-batch, so that one that runs again, after a crash between the two
    say, adds what is missing and nothing else.

        stream.writeStream.foreachBatch(land(orders, good={"path": "orders"}, bad={"path": "quarantine"}))

    Args:
        decoding: makes the good rows and the bad ones of a micro-batch, with `decode` and what else there is to do.
        good, bad: options of the sink; `format` is millstream-table unless it is given as millstream, for a topic.
        application_id: under which the ledgers of both remember what they hold; that of the query if not given. It
            must be another one when the checkpoint is a new one.

    Raises:
        BadOption: there is an option that is set here.
    """
    for name in (*good, *bad):
        if name.lower() in _OWN:
            raise BadOption(f"{name} is for land() to set; give it application_id")

    def write(batch: Any, batch_id: int) -> None:
        application = application_id or _query_id(batch)
        batch.persist()
        try:
            decoded = decoding(batch)
            # The quarantine first: who sees that rows are missing finds them there.
            for part, rows, options in (("bad", decoded.bad, bad), ("good", decoded.good, good)):
                ours = {"applicationId": f"{application}-{part}", "batchId": str(batch_id)}
                kind = options.get("format", _TABLE)
                given = {key: value for key, value in options.items() if key != "format"}
                rows.write.format(kind).options(**given, **ours).mode("append").save()
        finally:
            batch.unpersist()

    return write
