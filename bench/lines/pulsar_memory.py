"""What subscriptions cost in memory."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from bench.bed import Bed
from bench.drivers.pulsar_raw import PulsarRaw, drain
from bench.lines.line import Line, Metric
from bench.load import Budget

__all__ = ["PulsarMemory"]

_UNACKNOWLEDGED: Final = 1_000_000
_HOLES: Final = 10_000
_RECORD_BYTES: Final = 16
_PRODUCE_SECONDS: Final = 60.0
_SETTLE_SECONDS: Final = 0.5


class PulsarMemory(Line):
    """How much a server grows by what it has to remember; the messages themselves are on its disk by then."""

    name = "pulsar-memory"
    title = "Pulsar, memory that a subscription takes (single messages of 16 B)"
    metrics = (Metric("grown_mb", "MB grown", higher_is_better=False),)
    family = "pulsar"

    def cases(self) -> Sequence[str]:
        """Return a million unacknowledged messages, and every second of 20,000 acknowledged."""
        return [f"{_UNACKNOWLEDGED} unacknowledged", f"{_HOLES} holes"]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write, look, read, acknowledge perhaps, look again."""
        holes = case.endswith("holes")
        count = 2 * _HOLES if holes else _UNACKNOWLEDGED
        server, raw, topic = bed.fresh(), bed.pulsar_raw(), bed.topic()
        _warm_up(raw, bed.topic())
        work = raw.produce(topic, _RECORD_BYTES, 1, Budget(_PRODUCE_SECONDS, count * _RECORD_BYTES))
        with closing(raw.consumer(topic, "s", "shared" if holes else "exclusive", keeps_ids=holes)) as consumer:
            time.sleep(_SETTLE_SECONDS)
            before = server.resident_bytes()
            drain([consumer], work.records)
            if holes:
                consumer.acknowledge(consumer.counter.message_ids[::2])
            time.sleep(_SETTLE_SECONDS)
            return {"grown_mb": (server.resident_bytes() - before) / 1e6}


def _warm_up(raw: PulsarRaw, topic: str) -> None:
    """Do all of it once with a few messages, so that only what is remembered counts."""
    work = raw.produce(topic, _RECORD_BYTES, 1, Budget(_PRODUCE_SECONDS, 2 * _HOLES * _RECORD_BYTES))
    with closing(raw.consumer(topic, "w", "shared", keeps_ids=True)) as consumer:
        drain([consumer], work.records)
        consumer.acknowledge(consumer.counter.message_ids)
        time.sleep(_SETTLE_SECONDS)
