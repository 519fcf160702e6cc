"""Handing records to a broker, and knowing what became of them."""

__all__ = ["Sender"]

import sys
import time
from typing import Any, Final

from confluent_kafka import KafkaException

from millstream.cli.connection import Connection
from millstream.cli.errors import CliError
from millstream.cli.record_json import Outgoing

# As long as records are acknowledged, however slowly, the broker is at work.
_STALL_TIMEOUT_S: Final = 10.0
_POLL_INTERVAL_S: Final = 0.1
_PROGRESS_INTERVAL_S: Final = 0.25
_ANY_PARTITION: Final = -1


class Sender:
    """Sends records to one topic and counts them.

    Use it as `send` for each record, then `finish`, which alone says whether all have arrived.

    Args:
        producer: a confluent_kafka.Producer that reports only failed deliveries.
        connection: where it leads to.
        topic: name of the topic.
        show_progress: keep a line about the progress on standard error.
    """

    def __init__(self, producer: Any, connection: Connection, topic: str, *, show_progress: bool) -> None:
        self.record_count = 0
        self.byte_count = 0
        self._producer = producer
        self._connection = connection
        self._topic = topic
        self._failed_count = 0
        self._first_failure: Any = None
        self._started = time.monotonic()
        self._show_progress = show_progress
        self._next_progress = self._started + 4 * _PROGRESS_INTERVAL_S
        self._progress_shown = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the sender was made."""
        return time.monotonic() - self._started

    def send(self, record: Outgoing) -> None:
        """Queue a record, waiting for room if there is none.

        Raises:
            CliError: an earlier record has failed, this one cannot be sent, or the broker does not answer.
        """
        options: dict[str, Any] = {}
        if record.timestamp_ms:
            options["timestamp"] = record.timestamp_ms
        if record.headers:
            options["headers"] = record.headers
        partition = _ANY_PARTITION if record.partition is None else record.partition
        self.record_count += 1
        while True:
            try:
                self._producer.produce(
                    self._topic, record.value, record.key, partition, on_delivery=self._on_failure, **options
                )
                break
            except BufferError:
                self._wait_for_progress()
            except KafkaException as error:
                self._first_failure = error.args[0]
                self._failed_count += 1
                raise self._failure() from error
        self.byte_count += len(record.key or b"") + len(record.value or b"")
        self._producer.poll(0)
        if self._first_failure is not None:
            raise self._failure()
        self._report_progress()

    def finish(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            CliError: some were not.
        """
        try:
            while len(self._producer):
                self._wait_for_progress()
            # Failures that were reported with the last acknowledgement.
            self._producer.poll(0)
        finally:
            self._erase_progress()
        if self._first_failure is not None:
            raise self._failure()

    def _wait_for_progress(self) -> None:
        """Wait until fewer records are under way than now."""
        pending = len(self._producer)
        deadline = time.monotonic() + _STALL_TIMEOUT_S
        while len(self._producer) >= pending:
            self._producer.flush(_POLL_INTERVAL_S)
            self._report_progress()
            if time.monotonic() > deadline:
                problem = self._connection.unreachable() or f"no acknowledgement for {_STALL_TIMEOUT_S:.0f} s"
                raise CliError(
                    f"the broker at {self._connection.addresses} went away ({problem})",
                    f"{pending} of {self.record_count} records may be missing: see what the topic ends with, "
                    "and send the rest again",
                )

    def _on_failure(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed_count += 1
            self._first_failure = self._first_failure or error

    def _failure(self) -> CliError:
        self._erase_progress()
        explained = self._connection.explain(self._first_failure)
        return CliError(
            f"{self._failed_count} of {self.record_count} records were not written to {self._topic!r}",
            str(explained),
        )

    def _report_progress(self) -> None:
        if not self._show_progress or time.monotonic() < self._next_progress:
            return
        self._next_progress = time.monotonic() + _PROGRESS_INTERVAL_S
        self._progress_shown = True
        rate = self.record_count / self.elapsed_s
        sys.stderr.write(f"\r\x1b[K{self.record_count:,} records, {self.byte_count:,} bytes, {rate:,.0f} records/s")
        sys.stderr.flush()

    def _erase_progress(self) -> None:
        if self._progress_shown:
            self._progress_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
