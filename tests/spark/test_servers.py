"""The options that say where a cluster is and how its brokers let one in, and which of them are refused."""

import pickle
from pathlib import Path

import pytest

from millstream.spark.connections import Connections
from millstream.spark.errors import BadOption
from millstream.spark.read.options import ReadOptions
from millstream.spark.servers import Servers
from millstream.spark.write.options import WriteOptions
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest
from tests.support.certificates import make_certificates

HERE = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
PASSWORD = 'gehëim"\\ '
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def _servers(**options: str) -> Servers:
    """Of options without their prefix, and with _ for the dots of their names."""
    return Servers.of(HERE | {"kafka." + name.replace("_", "."): value for name, value in options.items()})


def test_as_text_they_are_addresses() -> None:
    servers = Servers.of({"Kafka.Bootstrap.Servers": " a:1, [::1]:2 ", "subscribe": "x"})
    assert (str(servers), servers.tls, servers.sasl) == ("a:1,[::1]:2", None, None)
    assert Servers.at(" a:1, [::1]:2 ").addresses == servers.addresses
    assert Servers.at(servers) is servers


@pytest.mark.parametrize("mechanism", ["plain", "SCRAM-SHA-256", "scram-sha-512"])
def test_a_name_and_a_password(mechanism: str) -> None:
    servers = _servers(
        security_protocol="sasl_plaintext",
        sasl_mechanism=mechanism,
        sasl_username=" ada ",
        sasl_password=PASSWORD,
    )
    assert servers.sasl is not None
    assert (servers.sasl.mechanism, servers.sasl.username, servers.sasl.password) == (
        mechanism.upper(),
        "ada",
        PASSWORD,
    )
    assert PASSWORD not in repr(servers)
    assert "gehëim" not in repr(servers)
    again = pickle.loads(pickle.dumps(servers))
    assert again == servers
    assert Servers.of(again.options) == servers


@pytest.mark.parametrize(
    "text",
    [
        f'{SCRAM} required username="ada" password="pa\\"ss;=";',
        f'\n shaded.{SCRAM}  REQUIRED\n  password = "pa\\"ss;="\n  username=ada ;\n',
    ],
)
def test_a_configuration_of_java(text: str) -> None:
    servers = _servers(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=text)
    assert servers.sasl is not None
    assert (servers.sasl.username, servers.sasl.password) == ("ada", 'pa"ss;=')
    assert servers.tls is not None


WITH_NAME = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "ada"}
WITH_TLS = {"security_protocol": "SSL"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "TLS"}, "kafka.security.protocol is one of PLAINTEXT, SSL"),
        ({"ssl_ca_location": "x"}, "kafka.ssl.ca.location is for kafka.security.protocol=SASL_SSL or SSL"),
        (
            {"sasl_mechanism": "PLAIN"},
            "kafka.sasl.mechanism is for kafka.security.protocol=SASL_PLAINTEXT or SASL_SSL",
        ),
        (WITH_TLS | {"sasl_username": "ada"}, "kafka.sasl.username is for kafka.security.protocol"),
        (WITH_NAME | {"ssl_key_location": "x"}, "kafka.ssl.key.location is for"),
        (WITH_NAME, "kafka.sasl.password is missing"),
        (WITH_NAME | {"sasl_password": ""}, "kafka.sasl.password is missing"),
        (WITH_NAME | {"sasl_username": "", "sasl_password": "x"}, "kafka.sasl.username is missing"),
        (WITH_NAME | {"sasl_mechanism": "GSSAPI"}, "kafka.sasl.mechanism is one of PLAIN, .* not 'GSSAPI'"),
        ({"security_protocol": "SASL_SSL"}, "kafka.sasl.mechanism is one of .* and is missing"),
        (WITH_NAME | {"sasl_jaas_config": "x"}, "kafka.sasl.jaas.config and kafka.sasl.username both"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": "secret"},
            "kafka.sasl.jaas.config is not of the form",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_jaas_config": f'{SCRAM} required username="a" password="secret";',
            },
            "kafka.sasl.jaas.config is for SCRAM-SHA-256 or SCRAM-SHA-512, and kafka.sasl.mechanism is PLAIN",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_jaas_config": 'com.example.Module required username="a" password="secret";',
            },
            "names the login module com.example.Module",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_jaas_config": f'{SCRAM} required username="a" password="secret" tokenauth="true";',
            },
            "a username and a password, and nothing else",
        ),
        (WITH_TLS | {"ssl_ca_location": "x", "ssl_truststore_location": "y"}, "say the same"),
        (WITH_TLS | {"ssl_ca_location": ""}, "kafka.ssl.ca.location is empty"),
        (WITH_TLS | {"ssl_truststore_type": "JKS"}, "kafka.ssl.truststore.type is always PEM"),
        (WITH_TLS | {"ssl_key_location": "x"}, "kafka.ssl.certificate.location is missing"),
        (WITH_TLS | {"ssl_endpoint_identification_algorithm": "ldap"}, "is https, or none"),
    ],
)
def test_what_contradicts_itself(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message) as raised:
        _servers(**options)
    assert "secret" not in str(raised.value)


def test_the_source_and_the_sink_take_them_and_no_others() -> None:
    options = HERE | {"kafka.security.protocol": "SSL"}
    assert ReadOptions.of(options | {"subscribe": "a"}).servers == WriteOptions.of(options).servers
    for unknown in ("kafka.ssl.protocol", "kafka.sasl.kerberos.service.name", "kafka.sasl.user"):
        with pytest.raises(BadOption, match=f"there is no option '{unknown}'"):
            ReadOptions.of(options | {"subscribe": "a", unknown: "x"})
        with pytest.raises(BadOption, match=f"there is no option '{unknown}'"):
            WriteOptions.of(options | {unknown: "x"})


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    other = tmp_path / "other.pem"
    other.write_text("nothing")
    for options, message in (
        ({"ssl_ca_location": "/nowhere.pem"}, "kafka.ssl.ca.location: /nowhere.pem cannot be read here"),
        ({"ssl_truststore_location": str(other)}, "kafka.ssl.truststore.location: .* certificates in PEM"),
        ({"ssl_keystore_location": str(other)}, "kafka.ssl.keystore.location: .* a certificate in PEM and its"),
        (
            {"ssl_certificate_location": files.client, "ssl_key_location": "/nowhere.pem"},
            "kafka.ssl.key.location: /nowhere.pem cannot be read here",
        ),
        (
            {"ssl_certificate_location": files.client, "ssl_key_location": files.key},
            "kafka.ssl.key.location: .* does not hold a certificate in PEM and its private key",
        ),
    ):
        with (
            Connections(_servers(security_protocol="SSL", **options)) as connections,
            pytest.raises(BadOption, match=message),
        ):
            connections.ask_any(METADATA, 12, MetadataRequest(topics=[]))
