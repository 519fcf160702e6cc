"""Power losses at random moments of a broker that compacts: the latest of what was acknowledged is always there."""

from pathlib import Path
from random import Random

import pytest

from millstream.model.frame import read_frame_header
from tests.unit.broker.cleaning.keyed_topic import KeyedTopic

SEEDS = 40
LIVES = 6
KEYS = 8


class Keyed:
    """A topic, and for each key the offset and the value of the last record that was acknowledged."""

    def __init__(self, database: str, seed: int) -> None:
        self.random = Random(seed)
        self.topic = KeyedTopic(
            database, min__cleanable__dirty__ratio="0", delete__retention__ms="30000", segment__bytes="600"
        )
        self.acknowledged: dict[bytes, tuple[int, bytes | None]] = {}
        self.written = 0

    def write(self) -> None:
        """Write some batches, and wait until they are on the disk."""
        told = {}
        for _ in range(self.random.randrange(1, 9)):
            pairs = []
            for _ in range(self.random.randrange(1, 4)):
                self.written += 1
                value = None if self.random.random() < 0.15 else b"%06d" % self.written + bytes(30)
                pairs.append((b"key %d" % self.random.randrange(KEYS), value))
            offset = self.topic.put(*pairs, timestamp_ms=self.topic.broker.runtime.now_ms())
            told.update({key: (offset + n, value) for n, (key, value) in enumerate(pairs)})
        self.topic.flush()
        self.acknowledged.update(told)

    def live(self) -> None:
        """Write and let the cleaner work, up to a moment in the middle of something."""
        for _ in range(self.random.randrange(1, 6)):
            self.write()
            if self.random.random() < 0.5:
                self.topic.seal()
            self.topic.broker.pass_ms(self.random.choice([100, 16_000, 40_000]))
        self.write()
        self.topic.seal()
        runtime = self.topic.broker.runtime
        runtime.hold("upkeep")
        self.topic.broker.pass_ms(15_000)
        # What the cleaner has handed over is done piece by piece, and then it is dark.
        for _ in range(self.random.randrange(12)):
            runtime.release("upkeep")
            for _ in range(self.random.randrange(1, 4)):
                runtime.step()
            runtime.hold("upkeep")
            self.topic.broker.pass_ms(1)

    def check(self) -> None:
        """See that offsets are dense, and that of each key nothing older than what was acknowledged comes last."""
        expected = self.topic.log.start_offset
        frames = self.topic.frames()
        for frame in frames:
            header = read_frame_header(frame)
            assert header.base_offset == expected
            expected = header.last_offset + 1
        assert expected == self.topic.log.end_offset
        last = {key: (offset, value) for offset, key, value in self.topic.left() if key is not None}
        for key, (offset, value) in self.acknowledged.items():
            if value is None:
                assert key not in last or last[key][0] >= offset, "nothing comes back that was deleted"
            else:
                assert last[key] == (offset, value)
        assert not [name for name in self.topic.files() if name.endswith(".new")]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_losses(seed: int, tmp_path: Path) -> None:
    keyed = Keyed(str(tmp_path / "db"), seed)
    for life in range(LIVES):
        keyed.live()
        keyed.topic.broker.kill()
        keyed.topic.broker.files.crash(seed * LIVES + life)
        keyed.topic.start_again()
        keyed.check()
    keyed.topic.seal()
    keyed.topic.broker.pass_ms(200_000)
    keyed.check()
    alive = {key: offset for key, (offset, value) in keyed.acknowledged.items() if value is not None}
    assert {key: offset for offset, key in keyed.topic.keyed()} == alive, "and in the end nothing else is left"
