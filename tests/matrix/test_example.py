"""The example: four programs in four protocols hear the same conversation."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.matrix.iggy import PACKAGE
from tests.support.client_venv import client_venv

ROOT: Final = Path(__file__).parents[2]


def test_four_programs_talk_in_one_topic() -> None:
    python = client_venv(PACKAGE.replace(" ", "-"), [PACKAGE.replace(" ", "==")])
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "four_protocols" / "run.py"), str(python)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    heard = [part.splitlines()[1:] for part in result.stdout.strip().split("\n\n")]
    assert len(heard) == 4
    assert all(one == heard[0] for one in heard)
    assert {line.split(":")[0] for line in heard[0]} == {"Kafka", "Kafka 0.7", "Pulsar", "Iggy"}
