"""What a job remembers between its runs, in a directory that the user names: its checkpoint.

    job.json    what the job is and what it has planned, written once
    done        how many of its pieces are finished, in decimal; rewritten after each
    lock        held by the process that runs it
    spark/      the checkpoint of its streaming query, if it is one

A file is written under another name, flushed, and renamed: it is whole or it is not there. The number of finished
pieces may be behind the truth, if the process dies between a piece and the note of it; the piece is written again
then under the number that it had, and the ledger of the sink knows that number.
"""

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millstream.spark.errors import JobError

__all__ = ["JobState", "job_state"]

_VERSION: Final = 1
_JOB: Final = "job.json"
_DONE: Final = "done"
_LOCK: Final = "lock"
_SPARK: Final = "spark"
_LOCAL: Final = "file://"


@dataclass
class JobState:
    """One job, as its checkpoint has it.

    Args:
        directory: the checkpoint.
        application_id: the name of the job in the ledgers of sinks.
        plan: what was planned when the job was new.
        done: how many pieces are finished.
    """

    directory: str
    application_id: str
    plan: Any
    done: int

    @property
    def spark_checkpoint(self) -> str:
        """The checkpoint of the job's streaming query."""
        return os.path.join(self.directory, _SPARK)

    def finish(self, piece: int) -> None:
        """Note that a piece is finished, and all before it."""
        self.done = piece + 1
        _write(self.directory, _DONE, str(self.done))


@contextlib.contextmanager
def job_state(
    checkpoint: str, kind: str, arguments: Mapping[str, Any], plan: Callable[[], Any] = dict
) -> Iterator[JobState]:
    """Open the checkpoint of a job, for this process alone.

    Args:
        checkpoint: a local directory; it is made if it is not there.
        kind: what kind of job it is.
        arguments: what makes it that job and no other, fit for JSON.
        plan: plans a new job; what it returns must be fit for JSON.

    Raises:
        JobError: the checkpoint is of another job, is in use, or cannot be written.
    """
    directory = checkpoint.removeprefix(_LOCAL)
    if "://" in directory:
        raise JobError(f"the checkpoint of a job is a local directory, not {checkpoint!r}")
    directory = os.path.abspath(directory)
    with contextlib.ExitStack() as stack:
        try:
            os.makedirs(directory, exist_ok=True)
            lock = stack.enter_context(open(os.path.join(directory, _LOCK), "a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state = _opened(directory, kind, dict(arguments), plan)
        except BlockingIOError:
            raise JobError(f"another process runs the job of {directory}; wait for it, or end it") from None
        except OSError as error:
            raise JobError(f"the checkpoint {directory} cannot be used: {error}") from None
        yield state


def _opened(directory: str, kind: str, arguments: dict[str, Any], plan: Callable[[], Any]) -> JobState:
    text = _read(directory, _JOB)
    if text is None:
        if _read(directory, _DONE) is not None or os.path.isdir(os.path.join(directory, "offsets")):
            raise JobError(f"{directory} is no checkpoint of a job; name a directory of its own")
        job = {
            "version": _VERSION,
            "kind": kind,
            "arguments": arguments,
            "application_id": f"millstream-{kind}-{uuid.uuid4()}",
            "plan": plan(),
        }
        _write(directory, _JOB, json.dumps(job, indent=1))
        return JobState(directory, str(job["application_id"]), job["plan"], 0)
    try:
        job = json.loads(text)
        version, known = job["version"], job["arguments"]
        state = JobState(directory, job["application_id"], job["plan"], int(_read(directory, _DONE) or 0))
    except (ValueError, KeyError, TypeError):
        raise JobError(f"{directory}/{_JOB} is damaged; begin the job anew in another directory") from None
    if version != _VERSION:
        raise JobError(f"the job in {directory} is of another version of Millstream; begin it anew in another one")
    given = json.loads(json.dumps(arguments))
    if job["kind"] != kind:
        raise JobError(f"the checkpoint {directory} is of a job of the kind {job['kind']}; name another directory")
    changed = next((name for name in given if known.get(name) != given[name]), None)
    if changed is not None:
        raise JobError(
            f"the checkpoint {directory} is of a job whose {changed} is {known.get(changed)!r}, not "
            f"{given[changed]!r}; name another directory"
        )
    return state


def _read(directory: str, name: str) -> str | None:
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(directory: str, name: str, text: str) -> None:
    path = os.path.join(directory, name)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
