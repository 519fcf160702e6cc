"""Java that starts quickly.

What runs for some seconds is not worth the compiler's best, and Spark's ten thousand classes, which take half of its
start, need not be parsed and verified again each time: the JVM can map them from an archive (JEP 350).
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
import pytest

__all__ = ["VARIABLE", "archiving_spark_classes", "options", "use_quick_java"]

VARIABLE: Final = "JDK_JAVA_OPTIONS"
"""Read by every `java` since 9, whoever starts it."""


def options(archive: str) -> str:
    """What makes Java start quickly; the log is off because an archive that does not fit would be a warning on the
    standard output, where some programs of Spark's talk to each other.

    Args:
        archive: the option for the archive of classes.
    """
    return f"-Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive}"


def _archive(config: pytest.Config) -> Path:
    assert config.cache is not None
    return config.cache.mkdir("java") / "spark-classes.jsa"


def use_quick_java(config: pytest.Config) -> None:
    """Have every Java that this process and its children start, start quickly, with the archive once it is there.

    A Java that cannot use the archive, being another one or having another class path, goes without.
    """
    os.environ[VARIABLE] = options(f"-XX:SharedArchiveFile={_archive(config)}")


@contextmanager
def archiving_spark_classes(config: pytest.Config) -> Iterator[None]:
    """Make the archive in the meantime, unless there is one or another process is about it."""
    archive = _archive(config)
    made_s = archive.stat().st_mtime if archive.exists() else 0.0
    with open(archive.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield
            return
        if made_s > os.stat(pyspark.__file__).st_ctime:
            yield
            return
        command = [sys.executable, "-m", "tests.support.spark_classes", str(archive)]
        with (
            open(archive.with_suffix(".log"), "w") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as maker,
        ):
            yield
            maker.terminate()
