"""`millstream produce` and `consume` against a server."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

NewTopic = Callable[..., str]


def test_lines_in_lines_out(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    lines = b"one\n\nt\xffo\rthree\n\x00last"
    produced = millstream("produce", topic, text=lines)
    assert produced.stdout == b""
    assert produced.stderr.startswith(b"produced 4 records, %d bytes in " % (len(lines) - 3))
    assert millstream("consume", topic, "--until-end").stdout == lines + b"\n"


def test_no_input_is_no_error(millstream: Any, new_topic: NewTopic) -> None:
    assert millstream("produce", new_topic()).stderr.startswith(b"produced 0 records, 0 bytes in ")


def test_codecs_and_acknowledgements(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    lines = b"".join(b"record %d\n" % number for number in range(500))
    for options in ("-z gzip --acks 1", "-z snappy", "-z lz4", "-z zstd --idempotent", "-z none --acks 0"):
        millstream("produce", topic, *options.split(), text=lines)
    assert millstream("consume", topic, "--count", "2500").stdout == 5 * lines


def test_keys_headers_and_files(millstream: Any, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic()
    image = tmp_path / "image"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    millstream("produce", topic, "--key-separator", r"\t", "--header", "a=1", text=b"k\tv\n")
    millstream("produce", topic, "--file", str(image), "--key", "cat")
    assert millstream("consume", topic, "-e", "--key-separator", r"\t").stdout == b"k\tv\ncat\t\x89PNG\r\n\x1a\n\n"
    shown = millstream("consume", topic, "-e", "--format", r"%t %p %o %k %V %h\n").stdout.decode()
    assert shown == f"{topic} 0 0 k 1 a=1\n{topic} 0 1 cat 8 \n"
    [first, _] = millstream("consume", topic, "-e", "--timestamp").stdout.splitlines(keepends=True)[:2]
    assert first.endswith(b"Z\tv\n")


def test_json_round_trip(millstream: Any, new_topic: NewTopic, topic: str) -> None:
    source, copy = new_topic(3), f"{topic}-copy"
    millstream("topic", "create", copy, "--partitions", "3")
    records: list[dict[str, Any]] = [
        {"value": "x", "key": "k", "timestamp": 1_600_000_000_000, "headers": [["a", "1"], ["a", None]]},
        {"value": {"base64": "/wD/"}, "key": {"base64": "gA=="}, "timestamp": 1_600_000_000_001, "headers": []},
        {"value": None, "key": "tombstone", "timestamp": 1_600_000_000_002, "headers": []},
        {"value": "", "key": "", "timestamp": 1_600_000_000_003, "headers": [["é", {"base64": "/w=="}]]},
    ]
    lines = "".join(json.dumps({**record, "partition": 2}) + "\n" for record in records).encode()
    millstream("produce", source, "--jsonl", "--keep-partition", text=lines)
    printed = millstream("consume", source, "-e", "--json").stdout
    millstream("produce", copy, "--jsonl", "--keep-partition", text=printed)
    original, copied = (
        [json.loads(line) for line in millstream("consume", name, "-e", "--json").stdout.splitlines()]
        for name in (source, copy)
    )
    wanted = [{**record, "partition": 2, "timestamp_type": "create"} for record in records]
    for name, found in ((source, original), (copy, copied)):
        assert found == [{**record, "topic": name, "offset": index} for index, record in enumerate(wanted)]


def test_where_to_start(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    lines = "".join(
        json.dumps(
            {"value": f"{partition}-{number}", "partition": partition, "timestamp": 1_600_000_000_000 + number}
        )
        + "\n"
        for number in range(5)
        for partition in (0, 1)
    )
    millstream("produce", topic, "--jsonl", "--keep-partition", text=lines.encode())

    def read(*args: str) -> list[str]:
        return sorted(millstream("consume", topic, "-e", *args).stdout.decode().split())

    assert read("--from", "3") == ["0-3", "0-4", "1-3", "1-4"]
    assert read("--from", "-1") == ["0-4", "1-4"]
    assert read("--from", "latest") == []
    assert read("--from", "@1600000000004", "--partition", "1") == ["1-4"]
    assert read("--from", "2020-09-13T12:26:40.003Z") == ["0-3", "0-4", "1-3", "1-4"]
    assert read("--from", "-1h") == []
    assert len(read()) == 10
    beyond = millstream("consume", topic, "--from", "6", status=1)
    assert beyond.stderr.decode().startswith(f"error: offset 6 is beyond the end of '{topic}'; start from 5")
    unknown = millstream("consume", topic, "--partition", "2", status=1)
    assert unknown.stderr.decode() == f"error: topic '{topic}' has no partition 2; choose one from 0 to 1\n"
    refused = millstream("produce", topic, "--partition", "2", status=1)
    assert refused.stderr.decode() == unknown.stderr.decode()


def test_following(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    millstream("produce", topic, text=b"before\n")
    with millstream.start("consume", topic) as reader:
        assert reader.stdout.readline() == b"before\n"
        with millstream.start("produce", topic, "--quiet") as writer:
            writer.stdin.write(b"first\n")
            writer.stdin.flush()
            # It is sent at once, not when the input ends.
            assert reader.stdout.readline() == b"first\n"
            writer.stdin.write(b"second")
        assert writer.returncode == 0
        assert reader.stdout.readline() == b"second\n"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(timeout=20) == 0
        assert reader.stderr.read() == b""


def test_a_closed_pipe_ends_it(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    millstream("produce", topic, text=b"a\nb\n")
    with millstream.start("consume", topic) as reader:
        assert reader.stdout.readline() == b"a\n"
        reader.stdout.close()
        assert reader.wait(timeout=20) == 0
        assert reader.stderr.read() == b""


def test_a_bad_line_does_not_lose_those_before_it(millstream: Any, new_topic: NewTopic) -> None:
    topic = new_topic()
    failed = millstream("produce", topic, "--jsonl", text=b'{"value": "x"}\nnonsense\n', status=1)
    assert failed.stderr.startswith(b"error: line 2 is not a record: ")
    assert millstream("consume", topic, "-e").stdout == b"x\n"
