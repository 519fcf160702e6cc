"""The file that describes a pipeline: found, read, and refused in one line."""

from pathlib import Path

import pytest

from millstream.spark.errors import PipelineError
from millstream.spark.pipelines.spec import find_spec, load_spec

_LEAST = "name: shop\nstorage: storage\nlibraries: [{glob: {include: defs/**}}]\n"


def write(directory: Path, text: str, name: str = "spark-pipeline.yml") -> str:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text)
    return str(path)


def test_all_fields(tmp_path: Path) -> None:
    text = _LEAST + "catalog: spark_catalog\nschema: sales\nconfiguration: {spark.a: 'b'}\n"
    spec = load_spec(write(tmp_path, text))
    assert (spec.name, spec.catalog, spec.database) == ("shop", "spark_catalog", "sales")
    assert (dict(spec.configuration), spec.libraries) == ({"spark.a": "b"}, ("defs/**",))
    assert spec.root == str(tmp_path)


def test_storage_is_relative_to_the_file_or_a_uri(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path, _LEAST))
    assert spec.storage == f"file://{tmp_path}/storage"
    assert spec.storage_dir == f"{tmp_path}/storage"
    assert spec.state_dir == f"{tmp_path}/storage/_millstream"
    spec = load_spec(write(tmp_path, _LEAST.replace("storage: storage", "storage: s3a://bucket/shop/")))
    assert (spec.storage, spec.storage_dir) == ("s3a://bucket/shop", None)
    assert spec.state_dir == f"{tmp_path}/_millstream"


def test_files_are_those_of_the_globs_in_order(tmp_path: Path) -> None:
    for name in ("defs/b.py", "defs/a.sql", "defs/sub/c.py", "defs/__pycache__/b.pyc", "other/d.py"):
        write((tmp_path / name).parent, "", (tmp_path / name).name)
    text = "name: n\nstorage: s\nlibraries: [{glob: {include: defs/**}}, {glob: {include: other/d.py}}]\n"
    files = load_spec(write(tmp_path, text)).files()
    assert [Path(file).relative_to(tmp_path).as_posix() for file in files] == [
        "defs/a.sql",
        "defs/b.py",
        "defs/sub/c.py",
        "other/d.py",
    ]


def test_a_project_is_found_by_its_file_its_directory_or_from_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "shop", _LEAST)
    below = tmp_path / "shop" / "defs"
    below.mkdir()
    assert find_spec(path) == find_spec(str(tmp_path / "shop")) == path
    monkeypatch.chdir(below)
    assert find_spec(None) == path
    with pytest.raises(PipelineError, match=r"no spark-pipeline\.yml in .*defs"):
        find_spec(str(below))
    with pytest.raises(PipelineError, match="there is no nowhere"):
        find_spec("nowhere")
    write(tmp_path / "shop", _LEAST, "spark-pipeline.yaml")
    with pytest.raises(PipelineError, match="has both"):
        find_spec(None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "is no YAML"),
        ("\xff", "the field|no fields"),
        ("", "it has no fields"),
        ("name: a\nstorage: s\n", "libraries names no files"),
        ("storage: s\nlibraries: []\n", "the field name is missing"),
        ("name: a\nstorage: 7\nlibraries: []\n", "the field storage is missing or no text"),
        (_LEAST + "colour: red\n", "no field 'colour'"),
        (_LEAST + "catalog: 7\n", "the field catalog is no text"),
        (_LEAST + "configuration: [a]\n", "configuration is no mapping"),
        (_LEAST + "configuration: {spark.a: 7}\n", "put its value into quotes: spark.a: '7'"),
        ("name: a\nstorage: s\nlibraries: [defs]\n", "no glob.include"),
        ("name: a\nstorage: s\nlibraries: [{glob: {include: 'd/*.py'}}]\n", "is no glob that pipelines know"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(PipelineError, match=said) as caught:
        load_spec(path)
    assert "\n" not in str(caught.value)
    assert path in str(caught.value)
