"""The checker of histories finds each anomaly when it is planted, and nothing in a history that is right."""

from collections.abc import Callable

import pytest

from tests.support.history import ANOMALIES, History, Read, Sent

NONE = dict.fromkeys(ANOMALIES, 0)


def right() -> History:
    """Two producers, two partitions, two consumers; one send that was never answered, and was kept."""
    history = History()
    history.sends["p"] = [Sent(value, 0, offset) for offset, value in enumerate(range(10, 15))]
    history.sends["q"] = [Sent(20, 1, 0), Sent(21, 1), Sent(22, 1, 2)]
    for consumer in ("c", "d"):
        history.polls[consumer] = [Read(0, offset, 10 + offset) for offset in range(5)]
        history.polls[consumer] += [Read(1, offset, 20 + offset) for offset in range(3)]
    return history


def forget(history: History, value: int) -> None:
    for consumer, reads in history.polls.items():
        history.polls[consumer] = [read for read in reads if read.value != value]


def lose(history: History) -> None:
    forget(history, 12)


def lose_the_last(history: History) -> None:
    forget(history, 14)


def lose_all(history: History) -> None:
    history.polls.clear()


def write_twice(history: History) -> None:
    for reads in history.polls.values():
        reads.append(Read(1, 3, 20))


def answer_with_a_wrong_offset(history: History) -> None:
    history.sends["q"][0].offset = 1


def tell_two_consumers_different_things(history: History) -> None:
    history.sends["q"].append(Sent(29, 1))
    history.polls["c"][-1] = Read(1, 2, 29)


def invent(history: History) -> None:
    for reads in history.polls.values():
        reads.append(Read(1, 3, 99))


def swap_sends(history: History) -> None:
    sends = history.sends["p"]
    sends[1], sends[2] = sends[2], sends[1]


def go_back(history: History) -> None:
    history.polls["c"].append(Read(0, 4, 14))


def skip(history: History) -> None:
    del history.polls["c"][2]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert right().anomalies() == NONE
    assert right().acknowledged == 7
    assert History().anomalies() == NONE


def test_what_was_not_acknowledged_may_be_lost() -> None:
    history = right()
    forget(history, 21)
    assert history.anomalies() == NONE


def test_a_gap_that_nobody_knows_of_is_no_skip() -> None:
    history = right()
    history.sends["q"].append(Sent(23, 1, 9))
    for reads in history.polls.values():
        reads.append(Read(1, 9, 23))
    assert history.anomalies() == NONE


@pytest.mark.parametrize(
    ("plant", "anomalies"),
    [
        (lose, {"lost-write": 1}),
        (lose_the_last, {"unseen": 1}),
        (lose_all, {"unseen": 7}),
        (write_twice, {"duplicate": 1}),
        (answer_with_a_wrong_offset, {"inconsistent-offsets": 1}),
        (tell_two_consumers_different_things, {"inconsistent-offsets": 1}),
        (invent, {"never-sent": 1}),
        (swap_sends, {"nonmonotonic-send": 1}),
        (go_back, {"nonmonotonic-poll": 1}),
        (skip, {"poll-skip": 1}),
    ],
)
def test_each_anomaly_is_found_when_it_is_planted(
    plant: Callable[[History], None], anomalies: dict[str, int]
) -> None:
    history = right()
    plant(history)
    assert history.anomalies() == {**NONE, **anomalies}
