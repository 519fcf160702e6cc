"""Certificates for tests: an authority, and those of a server on 127.0.0.1, of a client, and of a stranger."""

from dataclasses import dataclass
from pathlib import Path

import trustme

__all__ = ["Certificates", "make_certificates"]


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of files in PEM.

    Args:
        authority: the certificate of who has signed the others.
        certificate, key: the server's; the certificate has what leads to the authority behind it.
        both: the same two in one file.
        client: a client's certificate.
        client_key: its key.
        client_both: the same two in one file.
        strange_client: a certificate and its key that somebody else has signed, in one file.
    """

    authority: str
    certificate: str
    key: str
    both: str
    client: str
    client_key: str
    client_both: str
    strange_client: str

    @property
    def settings(self) -> list[str]:
        """The server's settings, as KEY=VALUE."""
        return [f"tls.certificate.file={self.certificate}", f"tls.key.file={self.key}"]


def make_certificates(directory: Path) -> Certificates:
    """Make them anew in a directory."""
    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    client = authority.issue_cert("client@example.org")
    stranger = trustme.CA().issue_cert("stranger@example.org")

    def write(name: str, *parts: trustme.Blob) -> str:
        path = directory / name
        path.write_bytes(b"".join(part.bytes() for part in parts))
        return str(path)

    return Certificates(
        authority=write("authority.pem", authority.cert_pem),
        certificate=write("server.pem", *server.cert_chain_pems),
        key=write("server-key.pem", server.private_key_pem),
        both=write("server-both.pem", server.private_key_and_cert_chain_pem),
        client=write("client.pem", *client.cert_chain_pems),
        client_key=write("client-key.pem", client.private_key_pem),
        client_both=write("client-both.pem", client.private_key_and_cert_chain_pem),
        strange_client=write("stranger.pem", stranger.private_key_and_cert_chain_pem),
    )
