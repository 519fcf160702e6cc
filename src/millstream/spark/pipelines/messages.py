"""One line out of what Spark has to say when something fails."""

import os
import re
import traceback
from typing import Final

__all__ = ["one_line", "place_of"]

_OURS: Final = re.compile(r"^(?:\w+\.)*millstream\.\w[\w.]*\.(?P<kind>[A-Z]\w+): (?P<text>.+)$", re.MULTILINE)
"""The last line of the traceback of an error of ours, as a Python worker hands it to Spark."""
_CLASS: Final = re.compile(r"^\((?:\w+\.)+\w+\)\s*")
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_ENDS: Final = ("\n\nJVM stacktrace:", "=== Streaming Query ===")
"""What comes behind these is for Spark's own log."""
_LENGTH_MAX: Final = 400


def one_line(text: str) -> str:
    """Cut the message of a Spark error down to what its reader can use.

    An error of this package inside of it, which came from a Python worker, stands for all of it.
    """
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1][1]).strip()
    text = _SQLSTATE.sub("", _CLASS.sub("", text.strip()), count=1)
    for end in _ENDS:
        text = text.partition(end)[0]
    text = " ".join(text.split())
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]} ..."


def place_of(error: BaseException, root: str) -> str:
    """An error with the file and line that raised it: of a file below a directory if it came through one."""
    if isinstance(error, SyntaxError):
        return f"{os.path.basename(error.filename or '')}:{error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = os.path.realpath(root) + os.sep
    last = next((frame for frame in reversed(frames) if os.path.realpath(frame.filename).startswith(own)), frames[-1])
    return f"{os.path.basename(last.filename)}:{last.lineno}: {type(error).__name__}: {error}"
