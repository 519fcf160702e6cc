"""TLS on real sockets: handshakes, refusals, certificates that change, and slow readers."""

import asyncio
import contextlib
import dataclasses
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509

from millstream.server.config import ServerConfig
from millstream.server.errors import BadSetting
from millstream.server.server import Server
from millstream.server.tls import HANDSHAKE_REFUSED, Tls, TlsFiles
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from tests.support.certificates import Certificates, make_certificates
from tests.unit.server.test_opening import NAMES, QUESTION, SOON, Peer, connected, run, serving

EVERY_ACL = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def context_of(certificates: Certificates, client: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificates.authority)
    if client:
        context.load_cert_chain(client)
    return context


@contextlib.asynccontextmanager
async def secured(server: Server, listener: str, context: ssl.SSLContext) -> AsyncIterator[Peer]:
    host, _, port = server.addresses()[listener].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()


async def ask(server: Server, context: ssl.SSLContext) -> None:
    """Connect, and ask a question."""
    async with secured(server, "kafka", context) as peer:
        peer.say(QUESTION)
        await peer.answer()


@pytest.mark.parametrize("plain_loop", [False, True])
def test_every_listener_takes_tls_and_plain(tmp_path: Path, certificates: Certificates, *, plain_loop: bool) -> None:
    async def test() -> None:
        settings = (*certificates.settings, "listener.pinned=kafka")
        async with serving(tmp_path, *settings) as server:
            for name in NAMES:
                async with secured(server, name, context_of(certificates)) as peer:
                    peer.say(QUESTION[:3])
                    await asyncio.sleep(0.01)
                    peer.say(QUESTION[3:])
                    assert await peer.is_answered()
                async with connected(server, name) as peer:
                    peer.say(QUESTION)
                    assert await peer.is_answered()

    run(test(), plain=plain_loop)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(tmp_path: Path, certificates: Certificates, version: ssl.TLSVersion) -> None:
    async def test() -> None:
        context = context_of(certificates)
        context.minimum_version = context.maximum_version = version
        async with serving(tmp_path, *certificates.settings) as server, secured(server, "any", context) as peer:
            peer.say(QUESTION)
            assert await peer.is_answered()

    run(test())


def test_a_hello_in_pieces(tmp_path: Path, certificates: Certificates) -> None:
    """The bytes of a whole conversation, each in a packet of its own."""

    async def test() -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context_of(certificates).wrap_bio(incoming, outgoing, server_hostname="localhost")
        async with serving(tmp_path, *certificates.settings) as server:
            host, _, port = server.addresses()["pulsar"].rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))

            async def say() -> None:
                for byte in outgoing.read():
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0)
                await writer.drain()

            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    client.do_handshake()
                    break
                await say()
                incoming.write(await reader.read(65536))
            client.write(QUESTION)
            await say()
            answer = b""
            while len(answer) < 8:
                with contextlib.suppress(ssl.SSLWantReadError):
                    answer += client.read(65536)
                    continue
                incoming.write(await reader.read(65536))
            assert answer[4:8] == b"\0\0\0\7"
            writer.close()

    run(test())


def test_without_a_certificate_a_hello_is_refused(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            for name in ("kafka", "any"):
                with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
                    async with secured(server, name, context_of(certificates)):
                        pass

    run(test())
    lines = [line for line in caplog.messages if "it speaks TLS: see tls.certificate.file" in line]
    assert len(lines) == 2
    assert HANDSHAKE_REFUSED[:1] == b"\x15"


def test_plain_connections_are_refused_where_tls_is_required(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        settings = (*certificates.settings, "tls.required=true", "listener.pinned=pulsar", SOON)
        async with serving(tmp_path, *settings) as server:
            for name in ("kafka", "pulsar"):
                async with connected(server, name) as peer:
                    peer.say(QUESTION)
                    assert await peer.rest() == b""
            async with secured(server, "kafka", context_of(certificates)) as peer:
                peer.say(QUESTION)
                assert await peer.is_answered()

    run(test())
    assert "it speaks kafka without TLS, which tls.required asks for" in caplog.text


def test_clients_show_certificates_if_they_are_asked(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        settings = (*certificates.settings, f"tls.client.ca.file={certificates.authority}", "tls.required=true")
        async with serving(tmp_path, *settings) as server:
            async with secured(server, "kafka", context_of(certificates, certificates.client_both)) as peer:
                peer.say(QUESTION)
                assert await peer.is_answered()
            for client in ("", certificates.strange_client):
                with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                    await ask(server, context_of(certificates, client))

    run(test())
    assert caplog.text.count("no TLS handshake") == 2


@pytest.mark.parametrize("plain_loop", [False, True])
def test_a_certificate_says_who_a_client_is(tmp_path: Path, certificates: Certificates, plain_loop: bool) -> None:
    """Inside TLS the super user may ask for ACLs; without a certificate nobody is a user at all."""
    name = x509.load_pem_x509_certificate(Path(certificates.client).read_bytes()).subject.rfc4514_string()
    settings = (
        *certificates.settings,
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users=User:{name}",
    )
    question = b"".join(DESCRIBE_ACLS.encode_request(1, 7, "test", EVERY_ACL))

    async def code(server: Server, client: str) -> int:
        async with secured(server, "kafka", context_of(certificates, client)) as peer:
            peer.say(question)
            _, response = DESCRIBE_ACLS.decode_response(1, memoryview(await peer.answer()))
            return int(response.error_code)

    async def test() -> None:
        async with serving(tmp_path, *settings, f"tls.client.ca.file={certificates.authority}") as server:
            assert await code(server, certificates.client_both) == ErrorCode.NONE
        async with serving(tmp_path, *settings) as server:
            assert await code(server, certificates.client_both) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(test(), plain=plain_loop)


def test_who_shakes_no_hands(tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async def shake_no_hands(peers: contextlib.AsyncExitStack) -> None:
        hello = bytes.fromhex("16030100050100000103")
        async with serving(tmp_path, *certificates.settings, SOON) as server:
            async with connected(server, "any") as peer:  # a hello that is none
                peer.say(hello)
                assert (await peer.rest())[:1] in {b"", b"\x15"}
            async with connected(server, "any") as peer:  # one that goes in the midst of its hello
                peer.say(bytes.fromhex("160301020001000103"))
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
            assert set(server.connection_counts().values()) == {0}
            peer = await peers.enter_async_context(
                connected(server, "any")
            )  # one that is there when the server stops
            peer.say(bytes.fromhex("160301020001000103"))
            await asyncio.sleep(0.05)
        assert await peer.rest() == b""

    async def test() -> None:
        async with contextlib.AsyncExitStack() as peers:
            await shake_no_hands(peers)

    run(test())
    assert "Traceback" not in caplog.text


def test_silence_inside_tls(tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with serving(tmp_path, *certificates.settings, SOON) as server:
            async with secured(server, "any", context_of(certificates)) as peer:
                assert await peer.rest() == b""
            async with secured(server, "kafka", context_of(certificates)) as peer:
                await asyncio.sleep(0.3)
                peer.say(QUESTION)
                assert await peer.is_answered()
            async with secured(server, "kafka", context_of(certificates)) as peer:  # TLS inside TLS
                peer.say(bytes.fromhex("160301020001000103"))
                assert await peer.rest() == b""

    run(test())
    assert "it said too little to be recognised" in caplog.text
    assert "there is TLS inside TLS" in caplog.text


def test_a_new_certificate_is_shown_to_who_comes_then(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        (tmp_path / "old").mkdir()
        (tmp_path / "new").mkdir()
        old, new = make_certificates(tmp_path / "old"), make_certificates(tmp_path / "new")
        async with serving(tmp_path, *old.settings) as server:
            async with secured(server, "kafka", context_of(old)) as before:
                shutil.copy(new.certificate, old.certificate)
                server.reload_tls()  # the key is not its own
                assert "the certificate stays as it is" in caplog.text
                shutil.copy(new.key, old.key)
                server.reload_tls()
                async with secured(server, "kafka", context_of(new)) as after:
                    for peer in (before, after):
                        peer.say(QUESTION)
                        assert await peer.is_answered()
            with pytest.raises(ssl.SSLCertVerificationError):
                async with secured(server, "kafka", context_of(old)):
                    pass

    run(test())


def test_files_that_are_no_certificates(tmp_path: Path, certificates: Certificates) -> None:
    files = TlsFiles(certificates.certificate, certificates.key)
    missing = str(tmp_path / "missing.pem")
    Tls(TlsFiles(certificates.both))
    for changes, message in (
        ({"certificate": missing}, f"tls.certificate.file {missing} or its key .* cannot be read: No such file"),
        ({"certificate": missing, "key": ""}, f"tls.certificate.file {missing} cannot be read: No such file"),
        ({"key": certificates.client_key}, "are not a certificate and its private key"),
        ({"client_ca": certificates.key}, "tls.client.ca.file .* has no certificates"),
        ({"client_ca": missing}, f"tls.client.ca.file {missing} cannot be read"),
    ):
        with pytest.raises(BadSetting, match=message):
            Tls(dataclasses.replace(files, **changes))


def test_settings_without_a_certificate() -> None:
    for setting in ("tls.required=true", "tls.key.file=/key", "tls.client.ca.file=/ca"):
        with pytest.raises(BadSetting, match=r"set tls\.certificate\.file"):
            ServerConfig.of(settings=[setting])
    with pytest.raises(BadSetting, match="and 'any' is none of them"):
        ServerConfig.of(settings=["listener.pinned=kafka,any"])
