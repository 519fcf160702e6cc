"""What is measured, one file for each kind."""

from collections.abc import Mapping
from typing import Final

from bench.lines.consume import ClientConsume, RawConsume
from bench.lines.latency import Latency
from bench.lines.line import Line, Metric, Sizes
from bench.lines.memory import Memory
from bench.lines.produce import Acknowledgement, ClientProduce, ConnectionsProduce, RawProduce
from bench.lines.pulsar_consume import PulsarConsume, PulsarFanOut, PulsarRawConsume
from bench.lines.pulsar_memory import PulsarMemory
from bench.lines.pulsar_produce import PulsarProduce, PulsarRawProduce, PulsarSend
from bench.lines.start_up import StartUp

__all__ = ["LINES", "Line", "Metric", "Sizes"]

LINES: Final[Mapping[str, type[Line]]] = {
    line.name: line
    for line in (
        RawProduce,
        ConnectionsProduce,
        RawConsume,
        ClientProduce,
        ClientConsume,
        Acknowledgement,
        Latency,
        StartUp,
        Memory,
        PulsarProduce,
        PulsarRawProduce,
        PulsarSend,
        PulsarConsume,
        PulsarRawConsume,
        PulsarFanOut,
        PulsarMemory,
    )
}
