"""What is kept of translations, and what has to go."""

from millstream.broker.translated_frames import TranslatedFrames


def test_what_is_kept_is_found() -> None:
    frames = TranslatedFrames(10_000)
    frames.keep("a", b"made", 4)
    frames.keep("nobody can read it", None, 0)
    assert frames.find("a") == (b"made", 4 + 512)
    found = frames.find("nobody can read it")
    assert found is not None
    assert found[0] is None
    assert frames.find("b") is None


def test_what_was_not_asked_for_longest_goes_first() -> None:
    frames = TranslatedFrames(3 * 1512)
    for name in "abc":
        frames.keep(name, name, 1000)
    assert frames.find("a") is not None
    frames.keep("d", "d", 1000)
    assert [name for name in "abcd" if frames.find(name) is not None] == ["a", "c", "d"]
    assert frames.size_bytes == 3 * 1512


def test_what_is_kept_again_counts_once() -> None:
    frames = TranslatedFrames(10_000)
    for size in (1000, 2000):
        frames.keep("a", size, size)
    assert frames.size_bytes == 2512
    assert frames.find("a") == (2000, 2512)


def test_what_alone_is_too_much_is_not_kept_and_drives_nothing_out() -> None:
    frames = TranslatedFrames(2000)
    frames.keep("a", "a", 100)
    frames.keep("b", "b", 2000)
    assert frames.find("b") is None
    assert frames.find("a") is not None


def test_a_limit_of_nothing() -> None:
    frames = TranslatedFrames(0)
    frames.keep("a", None, 0)
    assert frames.find("a") is None
    assert frames.size_bytes == 0


def test_it_never_takes_more_than_its_limit() -> None:
    frames = TranslatedFrames(50_000)
    for number in range(1000):
        frames.keep(number, b"", number * 7 % 3000)
        assert frames.size_bytes <= 50_000
