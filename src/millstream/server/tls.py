"""TLS: the certificate that the server shows, and what takes TLS off a connection that was read from already."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Final, cast

from millstream.server.errors import BadSetting

__all__ = ["HANDSHAKE_REFUSED", "Tls", "TlsFiles", "take_off"]

_log = logging.getLogger(__name__)

HANDSHAKE_REFUSED: Final = bytes.fromhex("15 0303 0002 02 28")
"""A record with one alert: fatal, handshake_failure (RFC 8446, 6), which clients show their users."""
_HANDSHAKE_S: Final = 10.0
"""Seconds for a handshake, which takes two round trips at most."""
_CLOSE_S: Final = 5.0
"""Seconds that a peer has to say that it has read everything, once this side has said that nothing follows."""
_ALPN: Final = ["http/1.1"]
"""The only protocol of those that have a name in TLS: clients that name none, or another, are let in too."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the server finds what it shows and asks for; all in PEM.

    Args:
        certificate: the certificate, and those that lead to the root behind it.
        key: its private key, not encrypted; empty if it stands in the same file.
        client_ca: the authorities whose certificates clients must show; empty to ask for none.
    """

    certificate: str
    key: str = ""
    client_ca: str = ""


class Tls:
    """What TLS connections are made with.

    Args:
        files: read now, and whenever `reload` is called.
        required: whether connections without TLS are refused.

    Raises:
        BadSetting: a file cannot be used.
    """

    def __init__(self, files: TlsFiles, *, required: bool = False) -> None:
        self._files = files
        self.required = required
        self.context = _context(files)

    @property
    def checks_clients(self) -> bool:
        """Whether everyone who is let in has shown a certificate."""
        return self.required and bool(self._files.client_ca)

    def reload(self) -> None:
        """Read the files again: connections made from now on are shown what is in them.

        Raises:
            BadSetting: a file cannot be used; nothing has changed.
        """
        self.context = _context(self._files)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(_ALPN)
    try:
        # A password, so that nobody is asked for one at a terminal.
        context.load_cert_chain(files.certificate, files.key or None, password="")
    except ssl.SSLError as error:
        raise BadSetting(
            f"tls.certificate.file {files.certificate} and its key are not a certificate and its private key, not "
            f"encrypted, in PEM: {error.reason or error}"
        ) from None
    except OSError as error:
        where = f"{files.certificate} or its key {files.key}" if files.key else files.certificate
        raise BadSetting(f"tls.certificate.file {where} cannot be read: {error.strerror}") from None
    if files.client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(files.client_ca)
        except ssl.SSLError as error:
            raise BadSetting(f"tls.client.ca.file {files.client_ca} has no certificates: {error.reason}") from None
        except OSError as error:
            raise BadSetting(f"tls.client.ca.file {files.client_ca} cannot be read: {error.strerror}") from None
    return context


async def take_off(
    context: ssl.SSLContext, transport: asyncio.Transport, inner: asyncio.BaseProtocol, head: bytearray
) -> asyncio.Transport:
    """Shake hands with a peer, and take TLS off a connection.

    Args:
        context: what is shown.
        transport: the connection, without TLS.
        inner: is given what was inside TLS, perhaps before this returns.
        head: what has been read from the connection; it is emptied, and may grow until then.

    Returns:
        The connection inside TLS.

    Raises:
        OSError: the peer and the server have not come to terms, or it went away.
    """
    loop = asyncio.get_running_loop()
    handshake = loop.create_task(
        loop.start_tls(
            transport,
            inner,
            context,
            server_side=True,
            ssl_handshake_timeout=_HANDSHAKE_S,
            ssl_shutdown_timeout=_CLOSE_S,
        )
    )
    # The loop puts its own protocol in place at the task's first step, and lets it begin in the step after that; then
    # it is given what was read before, as if it had just come.
    await asyncio.sleep(0)
    loop.call_soon(_give, transport, head)
    inside = await handshake
    if inside is None or transport.is_closing():  # which is no error to the loops
        raise ConnectionAbortedError("the connection ended during the handshake")
    return inside


def _give(transport: asyncio.Transport, head: bytearray) -> None:
    # uvloop's is no subclass of asyncio's.
    protocol = cast(asyncio.BufferedProtocol, transport.get_protocol())
    while head and not transport.is_closing():
        buffer = memoryview(protocol.get_buffer(len(head)))
        count = min(len(head), len(buffer))
        buffer[:count] = head[:count]
        del head[:count]
        protocol.buffer_updated(count)
