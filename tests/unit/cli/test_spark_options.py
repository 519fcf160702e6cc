"""Groups of options, and how commands on Spark are told how to speak to brokers."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from millstream.cli.errors import CliError
from millstream.cli.option_groups import with_groups
from millstream.cli.spark_options import OtherBroker, SourceBroker, Writing, server_options


@dataclass(frozen=True)
class Size:
    """Two options."""

    width: Annotated[int, typer.Option("--width", "-w")] = 3
    colours: Annotated[list[str] | None, typer.Option("--colour")] = None


def test_a_group_stands_for_its_options() -> None:
    app = typer.Typer()
    called: list[object] = []

    @app.command()
    @with_groups
    def paint(name: Annotated[str, typer.Argument()], size: Size, deep: bool = False) -> None:
        """Paint something."""
        called.append((name, size, deep))

    def call(*words: str) -> int:
        return CliRunner().invoke(app, list(words)).exit_code

    assert call("door") == 0
    assert call("door", "-w", "5", "--colour", "red", "--colour", "blue", "--deep") == 0
    assert called == [("door", Size(3, None), False), ("door", Size(5, ["red", "blue"]), True)]
    assert call() == 2
    assert "Paint something." in CliRunner().invoke(app, ["--help"]).output


def test_brokers_and_how_to_speak_to_them() -> None:
    tls = ["security.protocol=SSL", "ssl.ca.location=/ca.pem"]
    source = SourceBroker("a:1", tls)
    assert source.servers.options == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.ca.location": "/ca.pem",
    }
    assert OtherBroker().servers(source) == source.servers
    assert OtherBroker("b:2").servers(source).tls is None
    assert OtherBroker("b:2", tls).servers(source).tls == source.servers.tls
    assert Writing("zstd").sink_options == {"kafka.compression.type": "zstd"}
    assert Writing().sink_options == {}
    assert server_options(None, "-X") == {}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (["security.protocol"], "is not KEY=VALUE"),
        (["linger.ms=5"], "--property takes no 'linger.ms'; it takes security.protocol, ssl"),
        (["bootstrap.servers=b:1"], "--property takes no 'bootstrap.servers'"),
        (["security.protocol=TLS"], "security.protocol is one of PLAINTEXT"),
    ],
)
def test_properties_that_make_no_sense(properties: list[str], message: str) -> None:
    with pytest.raises(CliError, match=message):
        _ = SourceBroker("a:1", properties).servers


def test_how_to_speak_to_nobody() -> None:
    with pytest.raises(CliError, match="another broker; add --to-broker"):
        OtherBroker(None, ["security.protocol=SSL"]).servers(SourceBroker())
