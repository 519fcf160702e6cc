"""Which dialect a connection speaks, from what it sends.

A login says it with its version; before any login it is A. A login that says nothing (Node.js, or one with a token)
leaves several, which later requests narrow down: a dialect stays as long as what comes is a request of that dialect,
to its last byte. Of those that are left the latest is taken.
"""

from collections.abc import Sequence
from typing import Final

from millstream.wire.iggy.commands import BY_CODE, Command
from millstream.wire.iggy.dialects import LOGIN_DIALECTS, Dialect, of_sdk_version
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.incoming import Layout, layout_of
from millstream.wire.iggy.layout import decode
from millstream.wire.iggy.messages.batches import SendMessages
from millstream.wire.iggy.messages.users import LoginUser

__all__ = ["Recogniser", "fits"]

PING: Final = 1
LOGIN_USER: Final = 38
LOGIN_WITH_TOKEN: Final = 44
_TELLING: Final = frozenset({100, 101, 120, 121, 202, 302, 304, 602})
"""Commands whose requests differ between dialects that log in."""


class Recogniser:
    """What is known of a connection's dialect.

    `dialect` is the best guess so far, None before anything told; `settled` says whether it stands.
    """

    def __init__(self) -> None:
        self.dialect: Dialect | None = None
        self.settled = False
        self._left: Sequence[Dialect] = LOGIN_DIALECTS

    def see(self, code: int, payload: memoryview) -> Dialect:
        """Take note of a request with a length and a code.

        Returns:
            The dialect to read it in.
        """
        if self.dialect is None:
            if code == PING:
                return Dialect.A  # the same in all
            if code not in {LOGIN_USER, LOGIN_WITH_TOKEN}:
                self._settle(Dialect.A)
                return Dialect.A
        if code == LOGIN_USER:
            self._see_login(payload)
        elif self.dialect is None:
            self.dialect = self._left[-1]
        if code in _TELLING and not self.settled:
            self._narrow(code, payload)
        assert self.dialect is not None
        return self.dialect

    def _settle(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.settled = True

    def _see_login(self, payload: memoryview) -> None:
        if self.settled and self.dialect is not Dialect.A:
            return  # a second login of the same client
        try:
            login = decode(LoginUser, Dialect.C3, payload)
        except Refused:
            self._settle(Dialect.B1)  # it ends behind the password
            return
        dialect = of_sdk_version(login.version)
        if dialect is not None:
            self._settle(dialect)
        else:
            self.dialect, self.settled = self._left[-1], False

    def _narrow(self, code: int, payload: memoryview) -> None:
        command = BY_CODE[code]
        left = [dialect for dialect in self._left if fits(command, dialect, payload)]
        if left:
            self._left = left
            self.dialect = left[-1]
            self.settled = len(left) == 1


def fits(command: Command, dialect: Dialect, payload: memoryview) -> bool:
    """Whether a payload is a request of a dialect, to its last byte."""
    if not command.in_dialect(dialect):
        return False
    try:
        request = decode(command.request, dialect, payload, whole=True)
    except Refused:
        return False
    return not isinstance(request, SendMessages) or _send_fits(request, dialect, payload)


def _send_fits(request: SendMessages, dialect: Dialect, payload: memoryview) -> bool:
    """Whether messages look like a dialect's: by the metadata's length, and by where the first message ends."""
    layout = layout_of(dialect)
    if layout is Layout.PLAIN:
        return len(request.messages) >= 25
    header_bytes = 64 if layout is Layout.LONG else 56
    index_bytes = request.count * 16
    metadata_end = len(payload) - len(request.messages)
    if request.metadata_bytes != metadata_end - 4 or not 0 < index_bytes < len(request.messages) - header_bytes:
        return False
    first_end = int.from_bytes(request.messages[4:8], "little")
    lengths = request.messages[index_bytes + 48 : index_bytes + 56]
    content_bytes = int.from_bytes(lengths[:4], "little") + int.from_bytes(lengths[4:], "little")
    return first_end == header_bytes + content_bytes
