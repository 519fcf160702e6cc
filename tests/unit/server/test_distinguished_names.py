"""Names in certificates as text, against a library that writes them on its own account."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from millstream.server.distinguished_names import Subject, distinguished_name

ATTRIBUTES = [
    (NameOID.COUNTRY_NAME, "DE"),
    (NameOID.STATE_OR_PROVINCE_NAME, "Baden"),
    (NameOID.LOCALITY_NAME, "Ort"),
    (NameOID.STREET_ADDRESS, "Straße 1"),
    (NameOID.ORGANIZATION_NAME, 'A, "B" + C; D \\ <E> = F'),
    (NameOID.ORGANIZATIONAL_UNIT_NAME, "#1"),
    (NameOID.ORGANIZATIONAL_UNIT_NAME, " between spaces "),
    (NameOID.DOMAIN_COMPONENT, "example"),
    (NameOID.USER_ID, "7"),
    (NameOID.COMMON_NAME, "ada"),
]


def parsed(name: x509.Name, directory: Path) -> Subject:
    """The subject as the standard library tells it of a peer."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "certificate.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    [found] = context.get_ca_certs()
    return cast(Subject, found["subject"])


def test_a_name_of_everything(tmp_path: Path) -> None:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in ATTRIBUTES])
    text = distinguished_name(parsed(name, tmp_path))
    assert text == name.rfc4514_string()
    assert text.startswith("CN=ada,UID=7,DC=example,")


def test_parts_of_several_attributes(tmp_path: Path) -> None:
    both = [x509.NameAttribute(NameOID.COMMON_NAME, "ada"), x509.NameAttribute(NameOID.USER_ID, "7")]
    whole = [
        x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Engines")]),
        x509.RelativeDistinguishedName(both),
    ]
    first, _, last = distinguished_name(parsed(x509.Name(whole), tmp_path)).partition(",")
    assert set(first.split("+")) == {"CN=ada", "UID=7"}
    assert last == "O=Engines"


@pytest.mark.parametrize(
    ("value", "escaped"), [(" ", "\\ "), ("  ", "\\ \\ "), ("a ", "a\\ "), ("#", "\\#"), ("", "")]
)
def test_what_is_escaped_at_the_ends(value: str, escaped: str) -> None:
    assert distinguished_name(((("commonName", value),),)) == f"CN={escaped}"
