"""Regular expressions that clients send, in time that is linear in what they look at: Kafka takes RE2's as well."""

from typing import Final

import re2

from millstream.sessions.kafka.errors import InvalidPattern

__all__ = ["PATTERN_CHARACTERS_MAX", "compile_pattern"]

PATTERN_CHARACTERS_MAX: Final = 1000
"""Characters of a pattern: what it compiles to grows with it, and is built while everyone else waits."""
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # a client's mistake is told to the client


def compile_pattern(text: str) -> "re2._Regexp[str]":
    """Compile a pattern, which is meant to match as a whole (`fullmatch`).

    Raises:
        InvalidPattern: it is not one, or has more than PATTERN_CHARACTERS_MAX characters.
    """
    if len(text) > PATTERN_CHARACTERS_MAX:
        raise InvalidPattern(f"a regular expression of {len(text)} characters, where {PATTERN_CHARACTERS_MAX} may be")
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error as error:
        raise InvalidPattern(f"{text!r} is not a regular expression: {error}") from None
