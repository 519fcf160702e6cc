"""The Python that Spark starts on this machine, made quicker to begin.

Spark puts an archive with PySpark's sources in front of the path of every Python that it starts. What comes out of an
archive is compiled anew in each of them, which takes longer than all the rest; a declared flow starts several, and
Spark gives each ten seconds. The installed package is the same code, compiled once.
"""

import os
import shlex
import sys
from typing import Final

__all__ = ["worker_python"]

_NAME: Final = "python"
_SCRIPT: Final = """\
#!/bin/sh
# Spark's archives end with that of py4j.
PYTHONPATH="${{PYTHONPATH#*-src.zip:}}"
export PYTHONPATH
exec {python} "$@"
"""


def worker_python(directory: str) -> str:
    """Write a program into a directory that is this Python without Spark's archives on its path; returns its path."""
    path = os.path.join(directory, _NAME)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(_SCRIPT.format(python=shlex.quote(sys.executable)))
    os.chmod(f"{path}.new", 0o700)
    os.replace(f"{path}.new", path)
    return path
