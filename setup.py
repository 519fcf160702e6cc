"""Compiles the hot loops from their Python source where a C compiler is found; without one they stay Python."""

from Cython.Build import cythonize
from setuptools import Extension, setup

HOT_LOOPS = ("millstream.wire.kafka.record_places",)

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

setup(ext_modules=extensions)
