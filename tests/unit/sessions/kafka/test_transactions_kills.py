"""Kafka transactions under kills at any step, by seed: what was answered holds, what was not is asked for again."""

from pathlib import Path
from random import Random

import pytest

from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from tests.unit.sessions.kafka.transacting import AS_BEFORE, Teller, Who

STEPS = 35
PARTITIONS = 2
NONE = 0


class Producer:
    """A producer, and what became of what it wrote."""

    def __init__(self, name: str, who: Who) -> None:
        self.name = name
        self.who = who
        self.sequences = [0] * PARTITIONS
        self.open: list[bytes] = []
        self.offset: int | None = None


class Script:
    """Does things to a server at random, kills it now and then, and knows what must be seen."""

    def __init__(self, database: str, seed: int) -> None:
        self.random = Random(seed)
        self.teller = Teller(database)
        self.teller.create("orders", PARTITIONS)
        self.producers = {name: Producer(name, self.teller.open(name, 900_000)) for name in ("a", "b")}
        self.decided: dict[bytes, bool] = {}
        self.offsets = {"a": -1, "b": -1}
        self.count = 0

    def play(self) -> None:
        deeds = [self.write, self.write, self.write_as_before, self.plain, self.offset, self.end, self.take_over]
        for _ in range(STEPS):
            self.random.choice([*deeds, self.teller.again])()
            self.check()

    def _producer(self) -> Producer:
        producer = self.random.choice(list(self.producers.values()))
        self.teller.name = producer.name
        return producer

    def _next(self) -> bytes:
        self.count += 1
        return b"%d" % self.count

    def _maybe_kill(self) -> bool:
        """Kill so many steps after something was asked for that it may be answered, done, or neither."""
        if self.random.random() < 0.5:
            return False
        for _ in range(self.random.randrange(12)):
            self.teller.runtime.step()
        self.teller.again()
        return True

    def write(self, version: int = 12) -> None:
        producer, index, value = self._producer(), self.random.randrange(PARTITIONS), self._next()
        sequence = producer.sequences[index]
        pending = self.teller.sending(producer.who, value, sequence, index=index, version=version)
        if not self._maybe_kill():
            assert self.teller.wait(pending).error_code == NONE
        # Clients send again what was not answered, and may do so where it was.
        assert self.teller.write(producer.who, value, sequence, index=index, version=version) == NONE
        producer.sequences[index] += 1
        producer.open.append(value)

    def write_as_before(self) -> None:
        producer = self._producer()
        assert self.teller.add(producer.who, *range(PARTITIONS)) == NONE
        self.write_to(producer)

    def write_to(self, producer: Producer) -> None:
        value, index = self._next(), self.random.randrange(PARTITIONS)
        code = self.teller.write(producer.who, value, producer.sequences[index], index=index, version=AS_BEFORE)
        assert code == NONE
        producer.sequences[index] += 1
        producer.open.append(value)

    def plain(self) -> None:
        value = self._next()
        assert self.teller.produce(value, index=self.random.randrange(PARTITIONS)).error_code == NONE
        self.decided[value] = True

    def offset(self) -> None:
        producer = self._producer()
        self.count += 1
        assert self.teller.commit_offset(producer.who, producer.name, self.count) == NONE
        producer.offset = self.count

    def end(self) -> None:
        producer = self._producer()
        if not producer.open and producer.offset is None:
            return
        commit, version = self.random.random() < 0.6, self.random.choice((3, 5))
        pending = self.teller.ending(producer.who, commit=commit, version=version)
        if not self._maybe_kill():
            assert self.teller.wait(pending).error_code == NONE
        answer = self.teller.end(producer.who, commit=commit, version=version)
        assert answer.error_code == NONE
        if version == 5:
            self._renamed(producer, (answer.producer_id, answer.producer_epoch))
        self._decide(producer, commit=commit)

    def take_over(self) -> None:
        producer = self._producer()
        request = InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=900_000)
        pending = self.teller.send(INIT_PRODUCER_ID, request, 5)
        assert pending is not None
        if not self._maybe_kill():
            self.teller.wait(pending)
        self._renamed(producer, self.teller.open(producer.name, 900_000))
        self._decide(producer, commit=False)

    def _renamed(self, producer: Producer, who: Who) -> None:
        assert who > producer.who
        producer.who = who
        producer.sequences = [0] * PARTITIONS

    def _decide(self, producer: Producer, *, commit: bool) -> None:
        self.decided |= dict.fromkeys(producer.open, commit)
        if commit and producer.offset is not None:
            self.offsets[producer.name] = producer.offset
        producer.open, producer.offset = [], None

    def check(self) -> None:
        is_open = {value for producer in self.producers.values() for value in producer.open}
        seen: list[bytes | None] = []
        for index in range(PARTITIONS):
            everything = self.teller.values(committed=False, index=index)
            seen += everything
            stable = next((n for n, value in enumerate(everything) if value in is_open), len(everything))
            wanted = [value for value in everything[:stable] if value is not None and self.decided[value]]
            assert self.teller.values(index=index) == wanted
        assert sorted(map(bytes, filter(None, seen))) == sorted([*self.decided, *is_open]), "nothing lost or doubled"
        for name, producer in self.producers.items():
            assert self.teller.committed(name) == (NONE, self.offsets[name])
            code = self.teller.committed(name, stable=True)[0]
            assert (code == NONE) is (producer.offset is None)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_ever_half_there(tmp_path: Path, seed: int) -> None:
    Script(str(tmp_path / "metadata"), seed).play()
