"""Parts of frames: what acknowledging them means."""

from millstream.sessions.pulsar.remembered import Part, Remembered


def test_a_part_acknowledges_its_own_records() -> None:
    part = Part(base_offset=100, start=2, message_count=3, frame_count=8)
    assert part.acknowledged(None) == (100, 0b11100011)
    assert part.acknowledged(0b010) == (100, 0b11101011)
    assert part.acknowledged(0b111_111) == (100, 0b11111111), "bits behind its end are nobody's"


def test_everything_up_to_a_part() -> None:
    part = Part(base_offset=100, start=2, message_count=3, frame_count=8)
    assert part.acknowledged_up_to(None) == (100, 0b11100000)
    assert part.acknowledged_up_to(0b100) == (100, 0b11110000)
    end = Part(base_offset=100, start=5, message_count=3, frame_count=8)
    assert end.acknowledged_up_to(None) == (100, None)


def test_parts_are_remembered_until_they_are_acknowledged_or_too_many() -> None:
    remembered = Remembered()
    assert remembered.part(5) is None
    for entry_id in range(10_001):
        remembered.deliver_part(entry_id, Part(0, entry_id, 1, 20_000))
    assert remembered.part(0) is None
    assert remembered.part(1) == Part(0, 1, 1, 20_000)
    remembered.forget_part(1)
    remembered.forget_part(1)
    assert remembered.part(1) is None
