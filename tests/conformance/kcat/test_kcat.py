"""kcat, as Debian has it: it links librdkafka 2.0, which reads the advertised versions differently from today's.

Before 2.11 librdkafka switches a feature off unless the range of an API holds a certain version, and before 2.2 it
stumbles over tags in the answer to ApiVersions.
"""

import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.support.server_process import ServerProcess

KCAT = shutil.which("kcat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian's package kcat)")


def kcat(*words: str, text: str = "") -> str:
    assert KCAT is not None
    result = subprocess.run([KCAT, *words], input=text, capture_output=True, text=True, timeout=30, check=True)
    return result.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_go_in_and_come_out(broker: ServerProcess, unique: Callable[[str], str], codec: str) -> None:
    topic = unique("kcat")
    lines = "".join(f"line {number} of some text that compresses\n" for number in range(500))
    kcat("-P", "-b", broker.kafka, "-t", topic, "-z", codec, text=lines)
    assert kcat("-C", "-b", broker.kafka, "-t", topic, "-e", "-q") == lines


def test_keys_headers_and_idempotence(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("kcat")
    kcat("-P", "-b", broker.kafka, "-t", topic, "-K:", "-H", "a=1", "-X", "enable.idempotence=true", text="k:v\n")
    assert kcat("-C", "-b", broker.kafka, "-t", topic, "-e", "-q", "-f", "%k %s %h %o\n") == "k v a=1 0\n"


def test_a_group_reads_what_is_there(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic, group = unique("kcat"), unique("kcat")
    kcat("-P", "-b", broker.kafka, "-t", topic, text="one\ntwo\n")
    words = ["-b", broker.kafka, "-G", group, "-c", "2", "-q", "-X", "auto.offset.reset=earliest", topic]
    assert kcat(*words) == "one\ntwo\n"


def test_offsets_by_time(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("kcat")
    kcat("-P", "-b", broker.kafka, "-t", topic, text="one\ntwo\nthree\n")
    assert kcat("-Q", "-b", broker.kafka, "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 3"
    assert kcat("-Q", "-b", broker.kafka, "-t", f"{topic}:0:-2").strip() == f"{topic} [0] offset 0"


def test_metadata(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("kcat")
    kcat("-P", "-b", broker.kafka, "-t", topic, text="x\n")
    assert f'topic "{topic}" with 1 partitions' in kcat("-L", "-b", broker.kafka, "-t", topic)
