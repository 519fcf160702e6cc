"""The PyPI package `pulsar-admin`, driven by the tests that come with it."""

import subprocess

from tests.support.client_venv import client_venv

RUN = """
import sys, unittest
import pulsar_admin.http_client as http
host, port = sys.argv[1].rsplit(":", 1)
begin = http.HttpClient.__init__
http.HttpClient.__init__ = lambda self, *_: begin(self, host, port)  # its tests ask for localhost:8080
names = ["clusters", "namespaces", "persistent_topics", "tenants"]
suite = unittest.defaultTestLoader.loadTestsFromNames([f"pulsar_admin.{name}_test" for name in names])
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(0 if result.wasSuccessful() and result.testsRun >= 6 else 1)
"""


def test_its_own_tests_pass(address: str) -> None:
    python = client_venv("pulsar-admin", ["pulsar-admin==0.0.2"])
    run = subprocess.run([python, "-c", RUN, address], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
