"""Brokers that speak TLS only and let in whom they know: source, sink, jobs, lag and pipelines against real ones."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.client import Client
from millstream.spark.errors import AuthenticationFailed, BadSchema, BrokerUnreachable, SparkSourceError
from millstream.spark.jobs import archive, copy
from millstream.spark.lag import LagListener
from millstream.spark.servers import Servers
from millstream.spark.values.registry import registered
from tests.spark.conftest import Topics
from tests.support.certificates import Certificates, make_certificates
from tests.support.sample_records import BASE_MS, Sample
from tests.support.server_process import ServerProcess, serving

NAME, PASSWORD = "ada,lovelace", "gehëim=1"
COMMAND = [sys.executable, "-m", "millstream.cli.main"]


@dataclass(frozen=True)
class Guarded:
    """A broker that wants TLS, a certificate, a name and a password, and the options that it lets in.

    Args:
        server: the broker.
        files: certificates.
    """

    server: ServerProcess
    files: Certificates

    @property
    def properties(self) -> dict[str, str]:
        """Without the prefix of Spark's options."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.files.authority,
            "ssl.certificate.location": self.files.client,
            "ssl.key.location": self.files.client_key,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": NAME,
            "sasl.password": PASSWORD,
        }

    def options(self, **changed: str | None) -> dict[str, str]:
        """Those of Spark; in the names of what is changed _ stands for a dot, and None takes one away."""
        named = {name.replace("_", "."): value for name, value in changed.items()}
        options = {"bootstrap.servers": self.server.kafka, **self.properties, **named}
        return {f"kafka.{name}": value for name, value in options.items() if value is not None}

    @property
    def servers(self) -> Servers:
        """The same for our own functions."""
        return Servers.of(self.options())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker of its own."""
    directory = tmp_path_factory.mktemp("guarded")
    files = make_certificates(directory)
    users = directory / "users"
    users.write_text(f"{NAME}:{PASSWORD}\n", encoding="utf-8")
    settings = [
        *files.settings,
        f"tls.client.ca.file={files.authority}",
        "tls.required=true",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
        f"sasl.users.file={users}",
        "durability=os",
    ]
    # The certificate is not of the second address.
    with serving(str(directory / "data"), "kafka=127.0.0.1:0 any=127.0.0.2:0", settings) as server:
        yield Guarded(server, files)
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="module")
def inside(guarded: Guarded) -> Topics:
    """Makes and fills topics of it."""
    return Topics(guarded.server.kafka, guarded.properties)


def _ask(options: Mapping[str, str]) -> None:
    with Client(Servers.of(options)) as client:
        client.topic_names()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_who_is_known_is_let_in(guarded: Guarded, inside: Topics, mechanism: str) -> None:
    topic = inside.create("known")
    with Client(Servers.of(guarded.options(sasl_mechanism=mechanism))) as client:
        assert topic in client.topic_names()
        client.close()
        assert client.topics([topic])[topic].leaders == {0: guarded.server.kafka}
    module = "scram.Scram" if mechanism.startswith("SCRAM") else "plain.Plain"
    jaas = f'org.apache.kafka.common.security.{module}LoginModule required username="{NAME}" password="{PASSWORD}";'
    _ask(
        guarded.options(
            sasl_mechanism=mechanism,
            sasl_username=None,
            sasl_password=None,
            sasl_jaas_config=jaas,
            ssl_ca_location=None,
            ssl_truststore_location=guarded.files.authority,
            ssl_truststore_type="PEM",
            ssl_certificate_location=None,
            ssl_key_location=None,
            ssl_keystore_location=guarded.files.client_both,
        )
    )


def test_who_is_not_is_told_so(guarded: Guarded, tmp_path: Path) -> None:
    stranger = make_certificates(tmp_path).authority
    no_certificate: dict[str, str | None] = {"ssl_certificate_location": None, "ssl_key_location": None}
    cases: list[tuple[dict[str, str | None], type[SparkSourceError], str]] = [
        ({"sasl_password": "guess"}, AuthenticationFailed, "the user 'ada,lovelace' do not agree by SCRAM-SHA-512"),
        (
            {"sasl_password": "guess", "sasl_mechanism": "PLAIN"},
            AuthenticationFailed,
            "do not agree by PLAIN: .*; see the options that begin with kafka.sasl",
        ),
        (
            {"sasl_mechanism": "SCRAM-SHA-256"},
            AuthenticationFailed,
            "does not take SCRAM-SHA-256, but PLAIN, SCRAM-SHA-512; change kafka.sasl.mechanism",
        ),
        ({"ssl_ca_location": stranger}, AuthenticationFailed, "is not trusted: .*; see kafka.ssl.ca.location"),
        (no_certificate, BrokerUnreachable, "kafka.ssl.certificate.location if it asks for one"),
        (
            {"ssl_certificate_location": guarded.files.strange_client, "ssl_key_location": None},
            BrokerUnreachable,
            "kafka.ssl.certificate.location if it asks for one",
        ),
        (
            {"security_protocol": "SSL", "sasl_mechanism": None, "sasl_username": None, "sasl_password": None},
            BrokerUnreachable,
            "closed the connection.*kafka.security.protocol",
        ),
    ]
    for changed, kind, message in cases:
        with pytest.raises(kind, match=message) as raised:
            _ask(guarded.options(**changed))
        assert "guess" not in str(raised.value)
    with pytest.raises(BrokerUnreachable, match=r"see .*kafka.security.protocol"):
        _ask({"kafka.bootstrap.servers": guarded.server.kafka})


def test_a_broker_that_says_why_it_refuses_a_certificate(guarded: Guarded) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(guarded.files.both)
    context.load_verify_locations(guarded.files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            for _ in range(2):
                accepted, _ = listener.accept()
                tls = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
                with pytest.raises(ssl.SSLError):
                    tls.do_handshake()
                with socket.socket(fileno=tls.detach()) as connection:
                    # Closed with something unread, it would take its last words back.
                    while connection.recv(4096):
                        pass

        thread = threading.Thread(target=refuse)
        thread.start()
        here = {"bootstrap_servers": f"127.0.0.1:{listener.getsockname()[1]}", "ssl_key_location": None}
        for certificate in (None, guarded.files.strange_client):
            with pytest.raises(SparkSourceError, match=r"kafka.ssl.certificate.location") as raised:
                _ask(guarded.options(**here, ssl_certificate_location=certificate))
            assert "refuses TLS with this side" in str(raised.value)
        thread.join()


def test_the_name_in_the_certificate_counts_unless_it_is_not_to(guarded: Guarded) -> None:
    elsewhere = {"bootstrap_servers": guarded.server.addresses["any"]}
    with pytest.raises(AuthenticationFailed, match=r"127.0.0.2:.* is not trusted: .*127.0.0.2"):
        _ask(guarded.options(**elsewhere))
    _ask(guarded.options(**elsewhere, ssl_endpoint_identification_algorithm=""))


def test_schemas_are_asked_for_over_tls_too(guarded: Guarded, inside: Topics) -> None:
    topic = inside.create("no-schema")
    elsewhere = {"bootstrap_servers": guarded.server.addresses["any"]}
    there = guarded.options(**elsewhere, ssl_endpoint_identification_algorithm="none")
    with pytest.raises(BadSchema, match="has no schema at"):
        registered(Servers.of(there), topic).get()
    with pytest.raises(AuthenticationFailed, match="is not trusted"):
        registered(Servers.of(guarded.options(**elsewhere)), topic).get()


def test_a_broker_that_knows_neither(broker: ServerProcess) -> None:
    here = {"kafka.bootstrap.servers": broker.kafka}
    with pytest.raises(BrokerUnreachable, match=r"no Kafka broker answers at .*kafka.security.protocol"):
        _ask(here | {"kafka.security.protocol": "SSL"})
    credentials = {
        "kafka.sasl.username": "ada",
        "kafka.sasl.password": "x",
        "kafka.security.protocol": "SASL_PLAINTEXT",
    }
    _ask(here | credentials | {"kafka.sasl.mechanism": "PLAIN"})
    with pytest.raises(AuthenticationFailed, match="does not take SCRAM-SHA-512, but PLAIN"):
        _ask(here | credentials | {"kafka.sasl.mechanism": "SCRAM-SHA-512"})


def _numbers(rows: Any) -> list[int]:
    return sorted(int(row.value) for row in rows.select("value").collect())


@pytest.mark.parametrize("direct", ["always", "never"])
def test_a_batch_from_topic_to_topic(spark: Any, guarded: Guarded, inside: Topics, direct: str) -> None:
    source, target = inside.create("batch", 2), inside.create("batch")
    inside.write_numbers(source, range(50))
    inside.write_numbers(source, range(50, 80), 1)
    there = spark.read.format("millstream").options(**guarded.options())
    rows = there.option("subscribe", source).option("direct", direct).load()
    assert _numbers(rows) == list(range(80))
    rows.select("value").write.format("millstream").options(**guarded.options(), topic=target).mode("append").save()
    assert _numbers(there.option("subscribe", target).load()) == list(range(80))


def test_a_stream_from_topic_to_topic_and_how_far_it_is(
    spark: Any, guarded: Guarded, inside: Topics, tmp_path: Path
) -> None:
    source, target = inside.create("stream"), inside.create("stream")
    inside.write_numbers(source, range(30))
    stream = spark.readStream.format("millstream").options(**guarded.options(), subscribe=source)
    query = (
        stream.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 10)
        .option("kafka.group.id", "guarded-stream")
        .load()
        .select("value")
        .writeStream.format("millstream")
        .options(**guarded.options(), topic=target, checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    there = spark.read.format("millstream").options(**guarded.options())
    assert _numbers(there.option("subscribe", target).load()) == list(range(30))
    listener = LagListener(guarded.servers, group="guarded-listener")
    listener.note("query", {source: {0: 20}})
    listener.close()
    assert listener.lag["query"][source].rows == 10
    with Client(guarded.servers) as client:
        described = client.topics([source])
        assert client.committed("guarded-listener", described) == {source: {0: 20}}
        assert client.committed("guarded-stream", described)[source][0] >= 20


def test_a_wrong_password_ends_a_query_and_is_not_told(spark: Any, guarded: Guarded, inside: Topics) -> None:
    from pyspark.errors import PySparkException

    topic = inside.create("refused")
    reader = spark.read.format("millstream").options(**guarded.options(sasl_password="guess-me"), subscribe=topic)
    with pytest.raises(PySparkException, match=r"AuthenticationFailed: .* do not agree by SCRAM-SHA-512") as raised:
        reader.load().collect()
    assert "guess-me" not in str(raised.value)
    assert "guess-me" not in reader.load()._jdf.queryExecution().toString()


def test_jobs_between_two_brokers(
    spark: Any, guarded: Guarded, inside: Topics, broker: ServerProcess, tmp_path: Path
) -> None:
    topic = inside.create("job")
    inside.write(topic, [Sample(b"k", b"%d" % n, (("h", b"x"),), BASE_MS + n) for n in range(20)])
    end = archive(
        spark, servers=guarded.servers, topics=[topic], path=str(tmp_path / "table"), checkpoint=str(tmp_path / "a")
    )
    assert end.rows == 20
    end = copy(
        spark, servers=guarded.servers, topics=[topic], to_servers=broker.kafka, checkpoint=str(tmp_path / "there")
    )
    assert end.rows == 20
    end = copy(
        spark,
        servers=broker.kafka,
        topics=[topic],
        to_servers=guarded.servers,
        to=f"{topic}-back",
        checkpoint=str(tmp_path / "back"),
    )
    assert end.rows == 20
    there = spark.read.format("millstream").options(**guarded.options())
    assert _numbers(there.option("subscribe", f"{topic}-back").load()) == list(range(20))
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes()


@pytest.mark.timeout(600)
def test_a_job_and_a_pipeline_of_the_command_line(guarded: Guarded, inside: Topics, tmp_path: Path) -> None:
    topic = inside.create("pipeline")
    inside.write_numbers(topic, range(10))
    properties = [word for name, value in guarded.properties.items() for word in ("-X", f"{name}={value}")]

    def call(*words: str) -> str:
        result = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert PASSWORD not in result.stdout + result.stderr
        return result.stdout

    checkpoint = ["--checkpoint", str(tmp_path / "job")]
    told = call("job", "archive", topic, "--table", "t", "-b", guarded.server.kafka, *checkpoint, *properties)
    assert "10" in told.splitlines()[-1]

    call("pipeline", "init", "shop", "--topic", topic, "--broker", guarded.server.kafka)
    [definitions] = (tmp_path / "shop" / "transformations").glob("*.py")
    text = definitions.read_text(encoding="utf-8")
    options = f".options(**{guarded.options()!r})"
    definitions.write_text(text.replace('.format("millstream")', f'.format("millstream"){options}', 1), "utf-8")
    call("pipeline", "run", "shop", "--until-drained")
    log = (tmp_path / "shop" / "storage" / "_millstream" / "runs.jsonl").read_text(encoding="utf-8")
    assert "kafka.security.protocol" in log
    assert PASSWORD not in json.dumps(log)
    blind = subprocess.run([*COMMAND, "pipeline", "status", "shop"], cwd=tmp_path, capture_output=True, text=True)
    assert "kafka.sasl.password is missing" in blind.stderr
    inside.write_numbers(topic, range(5))
    flows = json.loads(call("pipeline", "status", "shop", "--json", "-X", f"sasl.password={PASSWORD}"))["flows"]
    assert [flow["lag"] for flow in flows] == [5, 5]
    shutil.rmtree(tmp_path / "shop")
