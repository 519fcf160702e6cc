# `make test` and `make demo` are the two commands of this project; `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help test check demo bench format lint types imports pytest clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

COMPILED := $(wildcard src/millstream/*/*.pxd src/millstream/*/*/*.pxd)

# An editable install leaves the sources uncompiled, which any other does not: where Python may not write there itself, each
# start of a server would compile them anew.
$(READY): pyproject.toml setup.py $(COMPILED) $(COMPILED:.pxd=.py) $(wildcard src/millstream/wire/*/proto/*.proto)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Millstream needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (the first time takes some minutes: PySpark is built from its source archive)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@$(BIN)/python -m compileall -q src
	@touch $@

test: check ## set everything up and pass all checks

check: format lint types imports pytest

format: $(READY) ## check the formatting (make fix mends it)
	@$(BIN)/ruff format --check .

lint: $(READY) ## ruff
	@$(BIN)/ruff check .

types: $(READY) ## mypy --strict
	@$(BIN)/mypy

imports: $(READY) ## the import contracts of pyproject.toml
	@$(BIN)/lint-imports

# Tests of one file share servers and Spark sessions, as do the files of a folder: they are taken in their order, the
# quick ones last. There is one process more than cores, because the long ones mostly wait; more than four only take each
# other's time. A test that fails is run once more: clients and Spark have timers and races of their own. What fails twice
# fails, and each first failure is listed (RERUN) to be mended.
pytest: $(READY) ## the tests alone, in up to four processes
	@$(BIN)/python -m pytest -n $$(($$(nproc) + 1)) --maxprocesses 4 --dist loadfile --no-loadscope-reorder --reruns 1 -raR --durations 30

fix: $(READY) ## format, and mend what ruff can
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .
.PHONY: fix

docs: $(READY) ## write the generated parts of the documentation anew
	@$(BIN)/python docs/generate.py
.PHONY: docs

demo: $(READY) ## the main job on real data: flights and weather through four protocols and a pipeline into tables and a chart
	@$(BIN)/python examples/flights/demo.py

bench: $(READY) ## throughput, latency, start-up and memory, beside the peers found on this machine
	@$(BIN)/python -m bench

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
