# Two commands need nothing but python3 (3.11 or newer) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test quick lint types tests bench bench-quick fuzz docs lock clean
.DELETE_ON_ERROR:

demo: $(VENV)/.run
	$(BIN)/adjudge demo --out demo --force

test: lint types tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

# What a change breaks first: lint, the imports, readers, evidence, verdicts, the heart of the statistics, two protocols' cases. Under a minute.
QUICK := test_rooms.py test_plugins.py evidence verdict stability report/test_numbers.py triage/test_cases.py consistency/test_cases.py \
  readers/test_extract.py readers/test_records.py readers/test_shape.py readers/test_blocks.py \
  stats/test_metric.py stats/test_proportions.py stats/test_confusion.py stats/test_agreement.py stats/test_exact.py
quick: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -x -q $(wildcard $(addprefix tests/,$(QUICK)))

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Small sizes, about half a minute; fails where a ratio fell to under half of the one in benchmarks/results.json (docs/benchmarks.md).
bench-quick: $(VENV)/.dev
	$(BIN)/python -m benchmarks --quick

# Takes hours: N evaluations of damaged files (50,000), a tenth as many damaged runs, every way to alter a run × every protocol, 60 kills.
N ?= 50000
SEED ?= 0
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzzing/evaluations.py $(N) $(SEED)
	$(BIN)/python tests/tampering/damage.py $$(($(N) / 10)) $(SEED)
	$(BIN)/python tests/tampering/table.py
	ADJUDGE_KILLS=60 $(BIN)/python -m pytest tests/faults/test_kills.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "adjudge needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.dev: requirements/dev.txt requirements/schemas.txt pyproject.toml $(wildcard tests/plugins/*/pyproject.toml) | $(VENV)/bin/python
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --require-hashes --no-deps --ignore-requires-python -r requirements/schemas.txt
	$(PIP) install --no-deps --no-build-isolation -e . $(patsubst %/pyproject.toml,-e %,$(wildcard tests/plugins/*/pyproject.toml))
	touch $@ $(VENV)/.run

# Names, versions and hashes only: no index address may enter the lock files.
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)-lock/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --output-file requirements/run.txt pyproject.toml requirements/build.in
	$(VENV)-lock/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --constraint requirements/run.txt --group dev --all-extras --output-file requirements/dev.txt pyproject.toml
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) demo runs dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

docs: $(VENV)/.dev
	$(BIN)/python tools/docs.py
