"""Reading through Pulsar's protocol what was written a moment ago."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Final

from bench.bed import Bed
from bench.drivers.pulsar_frames import KINDS
from bench.drivers.pulsar_raw import drain
from bench.lines.line import Line, Sizes
from bench.lines.loads import THROUGHPUT
from bench.load import Budget

__all__ = ["PulsarConsume", "PulsarFanOut", "PulsarRawConsume"]

_RECORD_BYTES: Final = 1_000
_BATCHES: Final = {"unbatched": 1, "batches of 100": 100}
_FILL_SECONDS: Final = 3.0
_FILL_BYTES: Final = 20_000_000
_SUBSCRIPTIONS: Final = 10


class _Consume(Line):
    """Fills a topic once for each case and reads it with new subscriptions."""

    metrics = THROUGHPUT
    family = "pulsar"
    fill_bytes = _FILL_BYTES

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self._filled: dict[Bed, tuple[str, int]] = {}
        self._subscriptions = 0

    def cases(self) -> Sequence[str]:
        """Return each kind of subscription, with and without batches."""
        return [f"{batch}, {kind}" for batch in _BATCHES for kind in KINDS]

    def prepare(self, bed: Bed, case: str) -> None:
        """Fill a topic."""
        topic = bed.topic()
        fill_bytes = min(self.fill_bytes, self.sizes.fill_bytes)
        budget = Budget(_FILL_SECONDS, fill_bytes)
        work = bed.pulsar_raw().produce(topic, _RECORD_BYTES, _BATCHES[case.split(", ")[0]], budget)
        self._filled[bed] = topic, work.records

    def finish(self, bed: Bed, case: str) -> None:
        """Forget the topic."""
        del self._filled[bed]

    def subscription(self) -> str:
        """Return a name that was not returned before."""
        self._subscriptions += 1
        return f"s{self._subscriptions}"


class PulsarConsume(_Consume):
    """`receive` and `acknowledge` for every message."""

    name = "pulsar-consume"
    title = "Pulsar, consume: pulsar-client, 1 KB, every message acknowledged"

    def prepare(self, bed: Bed, case: str) -> None:
        """Fill a topic with the client as well."""
        topic, batched = bed.topic(), not case.startswith("unbatched")
        budget = Budget(_FILL_SECONDS, min(self.fill_bytes, self.sizes.fill_bytes))
        work = bed.pulsar_client().produce(topic, _RECORD_BYTES, budget, batched=batched)
        self._filled[bed] = topic, work.records

    def cases(self) -> Sequence[str]:
        """Return each kind of subscription, with and without batches."""
        return [f"{batch}, {kind}" for batch in ("unbatched", "batched") for kind in KINDS]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Read the topic once."""
        topic, records = self._filled[bed]
        kind = case.split(", ")[1]
        return bed.pulsar_client().consume(topic, self.subscription(), kind, _RECORD_BYTES, records).metrics()


class PulsarRawConsume(_Consume):
    """A bare consumer that only counts: what the server can give."""

    name = "pulsar-raw-consume"
    title = "Pulsar, consume: a bare consumer, 1 KB, nothing acknowledged"
    consumers = 1

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Read the topic once with each consumer."""
        topic, records = self._filled[bed]
        batch, kind = case.split(", ")
        with ExitStack() as stack:
            consumers = [
                stack.enter_context(closing(bed.pulsar_raw().consumer(topic, self.subscription(), kind)))
                for _ in range(self.consumers)
            ]
            seconds = drain(consumers, records // _BATCHES[batch])
        read = records * self.consumers
        return {"mb_s": read * _RECORD_BYTES / seconds / 1e6, "records_s": read / seconds}


class PulsarFanOut(PulsarRawConsume):
    """The same messages to several subscriptions at once; what all of them get counts."""

    name = "pulsar-fan-out"
    title = f"Pulsar, fan-out: {_SUBSCRIPTIONS} subscriptions at once, bare consumers, 1 KB"
    consumers = _SUBSCRIPTIONS
    fill_bytes = 10_000_000

    def cases(self) -> Sequence[str]:
        """Return Exclusive and Shared subscriptions, with and without batches."""
        return [f"{batch}, {kind}" for batch in _BATCHES for kind in ("exclusive", "shared")]
