"""Compiles the hot loops where a C compiler is found, and writes the protobuf modules from their `.proto` files."""

from pathlib import Path
from typing import ClassVar

from Cython.Build import cythonize
from grpc_tools import protoc
from setuptools import Command, Extension, setup
from setuptools.command.build import build

HOT_LOOPS = (
    "millstream.model.frame_heads",
    "millstream.storage.frame_walk",
    "millstream.wire.iggy.message_rows",
    "millstream.wire.iggy.message_walk",
    "millstream.wire.iggy.polled_rows",
    "millstream.wire.kafka.message_places",
    "millstream.wire.kafka.record_places",
    "millstream.wire.kafka.record_rows",
    "millstream.wire.kafka.record_spans",
    "millstream.wire.kafka07.message_rows",
    "millstream.wire.kafka07.message_walk",
    "millstream.wire.pulsar.entry_messages",
    "millstream.wire.pulsar.entry_rows",
    "millstream.wire.pulsar.message_rows",
    "millstream.wire.pulsar.plain_sends",
    "millstream.wire.pulsar.property_names",
    "millstream.wire.texts",
)
"""Python modules that are compiled as they are; without a compiler they stay Python."""
PACKAGES_WITH_PROTO = ("millstream.wire.pulsar",)
"""Packages with a folder `proto`: each `proto/x.proto` becomes the modules `x_pb2.py` and `x_pb2.pyi` beside it."""


class BuildProtobuf(Command):
    """Writes the modules into the source tree of an editable installation, and into the build tree of any other."""

    description = "write the protobuf modules"
    user_options: ClassVar[list[tuple[str, str, str]]] = []

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.editable_mode = False  # set by setuptools

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def folders(self) -> list[tuple[str, Path]]:
        paths = [package.replace(".", "/") for package in PACKAGES_WITH_PROTO]
        return [(path, Path("src", path, "proto")) for path in paths]

    def target(self) -> Path:
        return Path("src" if self.editable_mode else self.build_lib or "build")

    def run(self) -> None:
        for path, folder in self.folders():
            sources = [f"{path}/{source.name}" for source in sorted(folder.glob("*.proto"))]
            target = self.target()
            target.mkdir(parents=True, exist_ok=True)
            # The virtual path makes the modules stand beside the folder, and gives each file a name of its own.
            options = [f"--proto_path={path}={folder}", f"--python_out={target}", f"--pyi_out={target}"]
            if protoc.main(["protoc", *options, *sources]) != 0:
                raise SystemExit(f"protoc refuses a file in {folder}")

    def get_source_files(self) -> list[str]:
        return [str(source) for _, folder in self.folders() for source in sorted(folder.glob("*.proto"))]

    def get_outputs(self) -> list[str]:
        return [
            str(self.target() / path / f"{source.stem}_pb2{ending}")
            for path, folder in self.folders()
            for source in sorted(folder.glob("*.proto"))
            for ending in (".py", ".pyi")
        ]

    def get_output_mapping(self) -> dict[str, str]:
        return {}  # what is generated has no twin in the source tree


build.sub_commands = [*build.sub_commands, ("build_protobuf", None)]

extensions = cythonize(
    [Extension(name, [f"src/{name.replace('.', '/')}.py"]) for name in HOT_LOOPS],
    compiler_directives={
        "annotation_typing": False,
        "boundscheck": False,  # the source checks every access itself, as the tests of its twin show
        "wraparound": False,
        "language_level": "3",
    },
    build_dir="build/cython",
)
for extension in extensions:
    extension.optional = True  # set here, because cythonize does not hand it on

setup(ext_modules=extensions, cmdclass={"build_protobuf": BuildProtobuf})
