"""Records that come again."""

from millstream.broker.recent_ids import RecentIds


def test_ids_are_new_once() -> None:
    recent = RecentIds(10, 1000)
    assert recent.fresh([b"a", b"b", b"a"], 0) == [True, True, False]
    assert recent.fresh([b"a"], 0) == [True]
    recent.remember([b"a", b"b"], 0)
    assert recent.fresh([b"b", b"c"], 999) == [False, True]


def test_ids_are_forgotten_after_a_while() -> None:
    recent = RecentIds(10, 1000)
    recent.remember([b"a"], 0)
    recent.remember([b"b"], 500)
    assert recent.fresh([b"a", b"b"], 1000) == [True, False]


def test_the_oldest_ids_make_room() -> None:
    recent = RecentIds(2, 1000)
    recent.remember([b"a", b"b", b"c"], 0)
    assert recent.fresh([b"a", b"b", b"c"], 0) == [True, False, False]
