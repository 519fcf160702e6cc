"""Tidiness as a test: sizes, docstrings, public names, who may open files, and that every module is tested."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if not path.stem.endswith("_pb2"))
"""All sources but those that protoc writes."""
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FILE_LINES_MAX = 599
FUNCTION_LINES_MAX = 69
MAY_OPEN_FILES = {
    "src/millstream/server/config.py",  # its own configuration, before there is a server
    "src/millstream/server/host.py",  # the kernel's, to measure the process and its host
    "src/millstream/storage/files.py",  # the one door to the disk
}
"""The command line and Spark run in the user's process and open the user's files."""
MAY_OPEN_FILES_BELOW = ("src/millstream/cli/", "src/millstream/spark/", "src/pyspark_millstream/")
LAYERS_TESTED_BY_IMPORT = ("broker", "model", "server", "sessions", "storage", "wire")
TESTED_BY_NAME = {
    "millstream.server.listener",  # by every test of the server
    "millstream.server.process",  # in processes of their own
    "millstream.server.protocols",  # by every test of the server
    "millstream.server.http.connection",  # by every test of the HTTP app
    "millstream.server.http.health",
    "millstream.server.http.site",
    "millstream.sessions.kafka.authorized_operations",  # with the answers that tell them
    "millstream.sessions.kafka.config_resources",  # with the requests that describe and change settings
    "millstream.sessions.kafka.leader_epoch",  # with the requests that name an epoch
    "millstream.sessions.kafka.service",  # by every test of the server
    "millstream.sessions.pulsar.service",
    "millstream.wire.errors",  # the root of trees that are
    "millstream.wire.limits",  # where each is kept to
}


def path_of(source: Path) -> str:
    return source.relative_to(ROOT).as_posix()


def module_name(source: Path) -> str:
    parts = source.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parsed(source: Path) -> ast.Module:
    return ast.parse(source.read_text(), str(source))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def public_names(tree: ast.Module) -> list[str] | None:
    """What stands in `__all__`; None if there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that may be meant by an import; `from a import b` may mean a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


every_source = pytest.mark.parametrize("source", SOURCES, ids=path_of)


@pytest.mark.parametrize("source", SOURCES + TESTS, ids=path_of)
def test_files_and_functions_are_short(source: Path) -> None:
    assert len(source.read_text().splitlines()) <= FILE_LINES_MAX
    long = [f.name for f in functions(parsed(source)) if (f.end_lineno or 0) - f.lineno + 1 > FUNCTION_LINES_MAX]
    assert not long


@every_source
def test_modules_say_what_they_are_and_what_is_public(source: Path) -> None:
    tree = parsed(source)
    if not tree.body:
        assert source.name == "__init__.py"
        return
    assert ast.get_docstring(tree)
    private = source.name.startswith("_") or all(isinstance(node, ast.Expr) for node in tree.body)
    assert private or public_names(tree) is not None


@every_source
def test_public_names_exist_and_say_what_they_are(source: Path) -> None:
    tree = parsed(source)
    defined = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    names = public_names(tree) or []
    assert len(names) == len(set(names))
    undocumented = [name for name in names if name in defined and not ast.get_docstring(defined[name])]
    assert not undocumented


@every_source
def test_few_open_files(source: Path) -> None:
    path = path_of(source)
    if path in MAY_OPEN_FILES or path.startswith(MAY_OPEN_FILES_BELOW):
        return
    calls = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call)]
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    assert "open" not in names
    attributes = {
        f"{call.func.value.id}.{call.func.attr}"
        for call in calls
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    }
    assert not attributes & {"os.open", "io.open", "io.FileIO", "os.fdopen"}


def test_every_module_is_tested() -> None:
    tested = {name for test in TESTS for name in imports(parsed(test))}
    mirrored = {test.relative_to(ROOT / "tests/unit") for test in TESTS if test.is_relative_to(ROOT / "tests/unit")}
    for source in SOURCES:
        path = source.relative_to(ROOT / "src/millstream") if "millstream" in source.parts else source
        if path.with_name(f"test_{path.name}") in mirrored:
            tested.add(module_name(source))
    # Messages are tested by their samples, all of them. What a tested module of the same package imports is tested
    # through it: handlers through their dispatch table, routes through the app.
    neighbours = {module_name(source): set(imports(parsed(source))) for source in SOURCES}
    found = list(tested)
    while found:
        name = found.pop()
        package = name.rpartition(".")[0]
        through = {one for one in neighbours.get(name, ()) if one.rpartition(".")[0] in {package, name}} - tested
        tested |= through
        found += through
    modules = {
        module_name(source)
        for source in SOURCES
        if module_name(source).startswith(tuple(f"millstream.{layer}." for layer in LAYERS_TESTED_BY_IMPORT))
        and source.name != "__init__.py"
        and ".messages." not in module_name(source)
    }
    assert "millstream.broker.group" in modules
    assert modules - tested - TESTED_BY_NAME == set()
    assert modules >= TESTED_BY_NAME
