"""Four programs, in four protocols, talk in one topic: each says a line, and prints the lines of all four.

    pip install millstream confluent-kafka pulsar-client apache-iggy
    python examples/four_protocols/run.py [PYTHON]

PYTHON is one that has apache-iggy, if that is another. None of the programs knows of Millstream.
"""

import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

import millstream

HERE = Path(__file__).parent
PROGRAMS = ("kafka_program.py", "kafka07_program.py", "pulsar_program.py", "iggy_program.py")


def main(iggy_python: str = sys.executable) -> None:
    """Run a server on one port, and all programs at once against it."""
    with millstream.running(listen=("any=127.0.0.1:0",)) as broker:
        address = broker.addresses["any"]
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("room", 1)])["room"].result(10)
        running = {}
        for name in PROGRAMS:
            python = iggy_python if name.startswith("iggy") else sys.executable
            running[name] = subprocess.Popen([python, str(HERE / name), address], stdout=subprocess.PIPE, text=True)
        for name, program in running.items():
            said, _ = program.communicate(timeout=60)
            print(f"{name} heard:\n{said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
