"""The file that describes a pipeline: `spark-pipeline.yml`, as Spark Declarative Pipelines has it.

    name: flights                       required
    storage: storage                    required: where checkpoints go; a directory beside the file, or a URI
    catalog, database (or schema)       where tables without a qualified name go; the database is made if need be
    configuration: {KEY: VALUE}         settings of Spark, static ones too
    libraries: [{glob: {include: G}}]   files with definitions, Python or SQL; G is a path or ends in /**

Spark's own `spark-pipelines` wants an absolute URI as storage; a relative directory is an addition of ours, so that a
project can be moved and shared.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from millstream.spark.errors import PipelineError

__all__ = ["FILE_NAMES", "Spec", "find_spec", "load_spec"]

FILE_NAMES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
_REQUIRED: Final = ("name", "storage")
_KNOWN: Final = (*_REQUIRED, "catalog", "database", "schema", "configuration", "libraries")
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A pipeline's description.

    Args:
        path: the file it was read from, absolute.
        name: of the pipeline.
        storage: URI below which checkpoints go.
        catalog, database: the defaults for names of tables; None for Spark's.
        configuration: settings of Spark.
        libraries: globs of files with definitions, relative to the file's directory.
    """

    path: str
    name: str
    storage: str
    catalog: str | None
    database: str | None
    configuration: Mapping[str, str]
    libraries: tuple[str, ...]

    @property
    def root(self) -> str:
        """The directory of the project."""
        return os.path.dirname(self.path)

    @property
    def storage_dir(self) -> str | None:
        """The storage as a directory of this machine; None if it is elsewhere."""
        parts = urlsplit(self.storage)
        return unquote(parts.path) if parts.scheme == "file" else None

    @property
    def state_dir(self) -> str:
        """Where the run log, the logs of Spark and the catalog are kept, on this machine."""
        return os.path.join(self.storage_dir or self.root, "_millstream")

    def files(self) -> list[str]:
        """The files with definitions that there are, absolute."""
        found: dict[str, None] = {}
        for include in self.libraries:
            if not include.endswith("/**"):
                path = os.path.join(self.root, include)
                if os.path.isfile(path):
                    found[path] = None
                continue
            for directory, names, files in os.walk(os.path.join(self.root, include.removesuffix("/**"))):
                names[:] = sorted(name for name in names if name != "__pycache__")
                found.update((os.path.join(directory, name), None) for name in sorted(files))
        return list(found)


def find_spec(where: str | None) -> str:
    """Find the file that describes a pipeline.

    Args:
        where: the file, or the directory that has it; None for this directory or one above it.

    Raises:
        PipelineError: there is none, or there are two.
    """
    if where is not None and os.path.isfile(where):
        return os.path.abspath(where)
    directory = os.path.abspath(where or os.curdir)
    if not os.path.isdir(directory):
        raise PipelineError(f"there is no {where}", "name the directory of a pipeline, or its spark-pipeline.yml")
    asked = directory
    while True:
        found = [path for name in FILE_NAMES if os.path.isfile(path := os.path.join(directory, name))]
        if len(found) > 1:
            raise PipelineError(f"{directory} has both {' and '.join(FILE_NAMES)}", "remove one of them")
        if found:
            return found[0]
        above = os.path.dirname(directory)
        if where is not None or above == directory:
            raise PipelineError(
                f"there is no spark-pipeline.yml in {asked}", "make a project with 'millstream pipeline init NAME'"
            )
        directory = above


def load_spec(path: str) -> Spec:
    """Read the file that describes a pipeline.

    Raises:
        PipelineError: it cannot be read, or does not describe one.
    """
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            document = yaml.safe_load(file)
    except OSError as error:
        raise PipelineError(f"{path} cannot be read: {error.strerror}", "mend that, or name another file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} is no YAML: {' '.join(str(error).split())}", "mend it") from None
    if not isinstance(document, dict):
        raise _wrong(path, "it has no fields", f"give it {' and '.join(_REQUIRED)}")
    for key in document:
        if key not in _KNOWN:
            raise _wrong(path, f"there is no field {key!r}", f"the fields are {', '.join(_KNOWN)}")
    for key in _REQUIRED:
        if not isinstance(document.get(key), str) or not document[key].strip():
            raise _wrong(path, f"the field {key} is missing or no text", f"add it: {key}: ...")
    return Spec(
        path=os.path.abspath(path),
        name=document["name"],
        storage=_storage(path, document["storage"].strip()),
        catalog=_text(path, document, "catalog"),
        database=_text(path, document, "database") or _text(path, document, "schema"),
        configuration=_configuration(path, document.get("configuration") or {}),
        libraries=_libraries(path, document.get("libraries")),
    )


def _storage(path: str, storage: str) -> str:
    if _SCHEME.match(storage):
        return storage.rstrip("/")
    return "file://" + os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(path)), storage))


def _text(path: str, document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong(path, f"the field {key} is no text", "put it into quotes")
    return value


def _configuration(path: str, settings: Any) -> dict[str, str]:
    if not isinstance(settings, dict):
        raise _wrong(path, "the field configuration is no mapping", "write one setting a line, as KEY: VALUE")
    for key, value in settings.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise _wrong(path, f"the setting {key} is no text", f"put its value into quotes: {key}: '{value}'")
    return settings


def _libraries(path: str, entries: Any) -> tuple[str, ...]:
    form = "write it as: libraries: [{glob: {include: transformations/**}}]"
    if not isinstance(entries, list) or not entries:
        raise _wrong(path, "the field libraries names no files", form)
    globs = []
    for entry in entries:
        include = entry.get("glob", {}).get("include") if isinstance(entry, dict) else None
        if not isinstance(include, str):
            raise _wrong(path, "an entry of libraries has no glob.include", form)
        if re.search(r"[*?\[]", include.removesuffix("/**")):
            raise _wrong(path, f"{include!r} is no glob that pipelines know", "name a file, or a directory with /**")
        globs.append(include)
    return tuple(globs)


def _wrong(path: str, what: str, remedy: str) -> PipelineError:
    return PipelineError(f"{path}: {what}", remedy)
