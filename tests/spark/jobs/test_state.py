"""What a job remembers."""

import json
import os
import threading
from pathlib import Path

import pytest

from millstream.spark.errors import JobError
from millstream.spark.jobs.ranges import pieces_of, planned, unplanned
from millstream.spark.jobs.state import job_state


def test_a_job_goes_on_with_what_it_has_planned(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "job")
    with job_state(checkpoint, "replay", {"path": "a", "rows": 5}, lambda: {"pieces": [1, 2]}) as first:
        assert (first.plan, first.done) == ({"pieces": [1, 2]}, 0)
        first.finish(0)
    with job_state(f"file://{checkpoint}", "replay", {"path": "a", "rows": 5}, lambda: {"pieces": []}) as second:
        assert (second.plan, second.done) == ({"pieces": [1, 2]}, 1), "it plans once"
        assert second.application_id == first.application_id
    with job_state(str(tmp_path / "other"), "replay", {"path": "a", "rows": 5}) as other:
        assert other.application_id != first.application_id


def test_a_plan_that_fails_leaves_no_job(tmp_path: Path) -> None:
    def fail() -> None:
        raise JobError("no such topic")

    with pytest.raises(JobError, match="no such topic"), job_state(str(tmp_path), "replay", {}, fail):
        pass
    with job_state(str(tmp_path), "replay", {}, lambda: 5) as state:
        assert state.plan == 5


def test_checkpoints_that_cannot_be_used(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "job")
    with job_state(checkpoint, "replay", {"path": "a"}):
        pass
    with pytest.raises(JobError, match="whose path is 'a', not 'b'"), job_state(checkpoint, "replay", {"path": "b"}):
        pass
    with pytest.raises(JobError, match="of a job of the kind replay"), job_state(checkpoint, "copy", {"path": "a"}):
        pass
    with pytest.raises(JobError, match="is a local directory"), job_state("s3://bucket/x", "copy", {}):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="cannot be used"), job_state(str(tmp_path / "file"), "copy", {}):
        pass
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    with pytest.raises(JobError, match="no checkpoint of a job"), job_state(str(tmp_path / "query"), "copy", {}):
        pass
    for text, message in (("{", "is damaged"), ('{"version": 1}', "is damaged")):
        (tmp_path / "job" / "job.json").write_text(text)
        with pytest.raises(JobError, match=message), job_state(checkpoint, "replay", {"path": "a"}):
            pass
    (tmp_path / "job" / "job.json").write_text(
        json.dumps({"version": 9, "kind": "replay", "arguments": {}, "application_id": "x", "plan": 0})
    )
    with pytest.raises(JobError, match="another version"), job_state(checkpoint, "replay", {"path": "a"}):
        pass


def test_one_process_at_a_time(tmp_path: Path) -> None:
    failures: list[str] = []

    def again() -> None:
        try:
            with job_state(str(tmp_path), "copy", {}):
                pass
        except JobError as error:
            failures.append(str(error))

    with job_state(str(tmp_path), "copy", {}):
        other = threading.Thread(target=again)
        other.start()
        other.join()
    assert "another process runs the job" in failures[0]
    again()
    assert len(failures) == 1, "and then the next"


def test_what_is_done_survives_a_half_written_note(tmp_path: Path) -> None:
    with job_state(str(tmp_path), "copy", {}) as state:
        state.finish(3)
    (tmp_path / "done.new").write_text("9")
    with job_state(str(tmp_path), "copy", {}) as state:
        assert state.done == 4
    assert os.path.exists(tmp_path / "done")


def test_pieces() -> None:
    ranges = {"a": {0: (10, 35), 1: (0, 5), 2: (7, 7)}, "b": {0: (0, 11)}}
    pieces = pieces_of(ranges, 30)
    assert pieces == [
        {"a": {0: (10, 20), 1: (0, 5)}, "b": {0: (0, 10)}},
        {"a": {0: (20, 30)}, "b": {0: (10, 11)}},
        {"a": {0: (30, 35)}},
    ]
    assert pieces_of({"a": {0: (4, 4)}}, 10) == []
    assert len(pieces_of({"a": {0: (0, 3)}, "b": {0: (0, 3)}}, 1)) == 3, "a piece has at least one offset"
    assert unplanned(json.loads(json.dumps(planned(ranges)))) == ranges
