"""Transactions under kills at any step, by seed: what was answered holds, and nothing is ever half there."""

from pathlib import Path
from random import Random

import pytest

from millstream.broker.transactions import TransactionState
from millstream.model.errors import MillstreamError
from tests.unit.broker.transactions.bank import Bank

STEPS = 40


class Script:
    """Does things to a broker at random, kills it now and then, and knows what must be seen."""

    def __init__(self, database: str, seed: int) -> None:
        self.random = Random(seed)
        self.bank = Bank(database)
        self.plain: list[list[int]] = [[], []]
        self.written: dict[int, list[list[int]]] = {}
        self.outcomes: dict[int, bool] = {}

    def play(self) -> None:
        for _ in range(STEPS):
            deeds = [self.begin, self.write, self.write, self.append, self.end, self.end_and_kill, self.kill]
            self.random.choice(deeds)()
            self.check()

    def open(self) -> list[int]:
        return [number for number in self.written if number not in self.outcomes]

    def begin(self) -> None:
        self.written[self.bank.begin(0, 1, timeout_ms=10**7)] = [[], []]

    def write(self) -> None:
        if self.open():
            number, index = self.random.choice(self.open()), self.random.randrange(2)
            self.written[number][index].append(self.bank.write(number, self.random.randint(1, 3), index))

    def append(self) -> None:
        index = self.random.randrange(2)
        self.plain[index].append(self.bank.append(1, index))

    def end(self) -> None:
        if self.open():
            number, commit = self.random.choice(self.open()), self.random.random() < 0.5
            self.bank.end(number, commit=commit)
            self.outcomes[number] = commit

    def end_and_kill(self) -> None:
        """Kill so many steps after a decision was asked for that it may be answered, stored without, or neither."""
        if not self.open():
            return
        number, commit = self.random.choice(self.open()), self.random.random() < 0.5
        pending = self.bank.transactions.end(number, commit=commit)
        for _ in range(self.random.randrange(12)):
            self.bank.broker.runtime.step()
        answered = pending.done
        self.bank.kill()
        state = self.bank.transactions.find(number).state
        if answered or state is not TransactionState.OPEN:
            assert state is (TransactionState.COMMITTED if commit else TransactionState.ABORTED)
            self.outcomes[number] = commit

    def kill(self) -> None:
        self.bank.kill()

    def check(self) -> None:
        for index in range(2):
            undecided = [offset for number in self.open() for offset in self.written[number][index]]
            stable_offset = min(undecided, default=self.bank.partition(index).log.end_offset)
            assert self.bank.partition(index).stable_offset == stable_offset
            committed = [
                offset for number, commit in self.outcomes.items() if commit for offset in self.written[number][index]
            ]
            wanted = sorted(offset for offset in self.plain[index] + committed if offset < stable_offset)
            assert self.bank.readable(index) == wanted


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_ever_half_there(tmp_path: Path, seed: int) -> None:
    Script(str(tmp_path / "metadata"), seed).play()


@pytest.mark.parametrize("steps", range(16))
@pytest.mark.parametrize("commit", [True, False])
def test_a_kill_while_it_is_ended(tmp_path: Path, steps: int, commit: bool) -> None:
    """Records and acknowledgements share their fate."""
    bank = Bank(str(tmp_path / "metadata"))
    bank.append()
    bank.append()
    bank.subscribe()
    number = bank.begin(1, subscription="s")
    bank.write(number, index=1)
    bank.acknowledge(number, 0)
    pending = bank.transactions.end(number, commit=commit)
    for _ in range(steps):
        bank.broker.runtime.step()
    answered = pending.done
    bank.kill()
    decided = bank.transactions.find(number).state.is_decided
    assert decided or not answered
    if not decided:
        bank.end(number, commit=commit)
    assert (bank.readable(1), bank.subscription().position) == (([0], 1) if commit else ([], 0))
    bank.kill()
    assert (bank.readable(1), bank.subscription().position) == (([0], 1) if commit else ([], 0))
    with pytest.raises(MillstreamError):
        bank.transactions.end(number, commit=not commit)
