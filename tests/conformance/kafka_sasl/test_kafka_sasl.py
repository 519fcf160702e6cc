"""Kafka clients that show who they are, against a server that wants to know."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from tests.support.server_process import ServerProcess, serving

TIMEOUT_S = 20
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
# A sign that SCRAM escapes, and one that is more than a byte.
NAME, PASSWORD = "ada,lovelace", "gehëim=1"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that lets in whom it knows."""
    directory = tmp_path_factory.mktemp("sasl")
    users = directory / "users"
    users.write_text(f"# who may come in\n\n{NAME}:{PASSWORD}\nbob:builder\n", encoding="utf-8")
    settings = [f"sasl.enabled.mechanisms={','.join(MECHANISMS)}", f"sasl.users.file={users}"]
    with serving(str(directory / "data"), settings=settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


def config(server: ServerProcess, mechanism: str, name: str = NAME, password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.kafka,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


def topic_name() -> str:
    return f"sasl-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(guarded: ServerProcess, mechanism: str) -> None:
    topic = topic_name()
    producer = Producer(config(guarded, mechanism))
    producer.produce(topic, b"value")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer(config(guarded, mechanism) | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.value() == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [(NAME, "wrong"), ("eve", PASSWORD)])
def test_librdkafka_is_told_that_it_is_refused(
    guarded: ServerProcess, mechanism: str, name: str, password: str
) -> None:
    errors: list[KafkaError] = []
    producer = Producer(config(guarded, mechanism, name, password) | {"error_cb": errors.append})
    for _ in range(TIMEOUT_S * 10):
        producer.poll(0.1)
        if any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            return
    pytest.fail(f"no error of authentication came, but {errors}")


def test_a_client_that_shows_nothing_is_not_let_in(guarded: ServerProcess) -> None:
    producer = Producer({"bootstrap.servers": guarded.kafka, "log_level": 0, "message.timeout.ms": 1500})
    failed: list[Any] = []
    producer.produce("nobody", b"value", on_delivery=lambda error, _: failed.append(error))
    producer.flush(TIMEOUT_S)
    assert failed
    assert failed[0] is not None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(guarded: ServerProcess, mechanism: str) -> None:
    async def run(password: str) -> bytes:
        topic = topic_name()
        options = {
            "bootstrap_servers": guarded.kafka,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "bob",
            "sasl_plain_password": password,
        }
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            value: bytes = (await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value
            return value

    async def refused() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=guarded.kafka,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="bob",
            sasl_plain_password="wrong",
        )
        with pytest.raises(KafkaConnectionError):
            await producer.start()
        await producer.stop()

    assert asyncio.run(run("builder")) == b"value"
    asyncio.run(refused())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(guarded: ServerProcess, mechanism: str) -> None:
    topic = topic_name()
    options = {
        "bootstrap_servers": guarded.kafka,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "bob",
        "sasl_plain_password": "builder",
    }
    producer = KafkaProducer(**options)
    producer.send(topic, b"value").get(timeout=TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000, **options)
    assert next(iter(consumer)).value == b"value"
    consumer.close()


def test_credentials_that_an_admin_sets(guarded: ServerProcess) -> None:
    admin = AdminClient(config(guarded, "PLAIN"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    changes = [UserScramCredentialUpsertion("carol", info, b"sesame")]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(TIMEOUT_S)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(TIMEOUT_S)
    (found,) = described.scram_credential_infos
    assert (found.mechanism, found.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)
    producer = Producer(config(guarded, "SCRAM-SHA-512", "carol", "sesame"))
    producer.produce(topic_name(), b"value")
    assert producer.flush(TIMEOUT_S) == 0
    gone = [UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_512)]
    for done in admin.alter_user_scram_credentials(gone).values():
        done.result(TIMEOUT_S)


def test_a_client_set_up_for_it_is_let_in_where_it_is_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(str(tmp_path_factory.mktemp("open") / "data")) as server:
        producer = Producer(config(server, "PLAIN", "anybody", "anything"))
        producer.produce(topic_name(), b"value")
        assert producer.flush(TIMEOUT_S) == 0
