"""The Python of Spark's workers takes PySpark from where it is installed, and everything else as it is told."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from millstream.spark.worker_python import worker_python

ASK = "import sys, pyspark; print(pyspark.__file__); print(sys.argv[1:]); print(sys.path)"


def test_pyspark_is_the_installed_one(tmp_path: Path) -> None:
    home = os.path.dirname(pyspark.__file__)
    archives = sorted(Path(home, "python", "lib").glob("*.zip"), key=lambda path: path.name != "pyspark.zip")
    assert archives[0].name == "pyspark.zip"
    assert archives[-1].name.endswith("-src.zip")
    python = worker_python(str(tmp_path))
    path = ":".join([*map(str, archives), str(tmp_path), "/somewhere"])
    for program, place in ((sys.executable, str(archives[0])), (python, home)):
        command = [program, "-c", ASK, "a b", "c"]
        said = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True).stdout
        file, words, paths = said.splitlines()
        assert file.startswith(place)
        assert words == "['a b', 'c']"
        assert f"'{tmp_path}', '/somewhere'" in paths
