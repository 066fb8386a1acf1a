# Every command a newcomer needs; each works on a fresh clone.

PYTHON ?= python3
USERS ?= 1e6
ENGINE ?= duckdb
SECONDS ?= 60
SEED ?= 1
WORDS ?= $(wildcard ../shared/data/words.parquet)
VENV := .venv
DEMO := .venv-demo
# Tests start hundreds of processes: where none may keep what Python compiled, each compiles all of Plume again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo browser postgresql check docs test test-spark test-spark-connect test-postgresql test-engines engines-spark engines-spark-connect engines-duckdb engines-postgresql test-pyspark test-slow fuzz bench paper paper-full defaults peers clean

help:
	@echo "make demo    private recipe counts on made-up searches"
	@echo "make test    checks, the tests on DuckDB, the quick ones of the other engines"
	@echo "make test-engines  the rest of the tests of the other engines, and what takes longer on DuckDB"
	@echo "make test-slow  the long tests, on all engines"
	@echo "make test-pyspark  tests of Spark on an older PySpark (VERSION=4.1)"
	@echo "make fuzz    hostile statements, and hostile values of every type in every role, made up from a seed (SECONDS=3600 SEED=1)"
	@echo "make check   format, lint, types, contracts"
	@echo "make docs    the documentation as a site, in build/docs"
	@echo "make bench   speed against the same query without privacy (USERS=1e7 for more, ENGINE=spark)"
	@echo "make paper   the paper's tables and figures, into docs/results (WORDS=FILE for words); make paper-full: 10^8 users too"
	@echo "make defaults  which way to select keys is best, by how many keys users have, into docs/results (WORDS=FILE for words)"
	@echo "make peers   PipelineDP, OpenDP, SmartNoise and Tumult on the same file, into docs/results"

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(VENV)/bin/pyright --version >/dev/null  # fetches itself when it is first called
	touch $@

$(DEMO)/ready: pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

setup: $(VENV)/ready

demo: $(DEMO)/ready
	@$(DEMO)/bin/plume demo

check: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy experiments benchmarks/peers/peers.py
	$(VENV)/bin/lint-imports

# Reports are tested in a real Chromium: one that is there, Debian's, or the one that Playwright fetches. Without one tests fail.
browser: setup
	@$(VENV)/bin/python tests/browsers.py || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } || \
	  $(VENV)/bin/playwright install chromium

# The engine and the ledger are tested on a real server, which tests start by themselves; only its programs are needed.
postgresql: setup
	@$(VENV)/bin/python tests/postgresql_servers.py || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && apt-get install -qq -y --no-install-recommends postgresql; }

docs: setup
	$(VENV)/bin/sphinx-build --fail-on-warning --keep-going --quiet -c docs . build/docs
	@echo "build/docs/index.html"

test: check browser postgresql
	$(VENV)/bin/pytest --numprocesses 2 --dist worksteal -m "not slow and not engines"
	$(MAKE) --jobs 2 test-spark test-spark-connect test-postgresql

# Classic Spark and Spark Connect each in a process of their own: in one, the second silently is the first.
test-spark test-spark-connect test-postgresql: setup
	$(VENV)/bin/pytest -m "not slow and not engines" --engines $(@:test-%=%)

test-engines: postgresql
	$(MAKE) --jobs 2 engines-spark engines-spark-connect engines-duckdb engines-postgresql

engines-spark engines-spark-connect engines-duckdb engines-postgresql: setup
	$(VENV)/bin/pytest -m "engines and not slow" --engines $(@:engines-%=%)

# Spark as it was: each version of PySpark in an environment of its own. PySpark 4.1 leaves sockets for Python to close, which is no fault of ours.
VERSION ?= 4.1
PYSPARK := build/pyspark-$(VERSION)
PYSPARK_TESTS := $(addprefix tests/,$(addsuffix .py,spark/test_sessions spark/test_inputs spark/test_keeping spark/test_lookups engines/test_everywhere engines/test_sql))

$(PYSPARK)/ready: pyproject.toml
	$(PYTHON) -m venv $(PYSPARK)
	$(PYSPARK)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'pyspark[connect]==$(VERSION).*'
	touch $@

test-pyspark: $(PYSPARK)/ready
	$(PYSPARK)/bin/pytest -m "not slow" -W "ignore:unclosed <socket:ResourceWarning" --engines spark $(PYSPARK_TESTS)
	$(PYSPARK)/bin/pytest -m "not slow" --engines spark-connect $(PYSPARK_TESTS)

test-slow: setup
	$(VENV)/bin/pytest -m slow
	$(VENV)/bin/pytest -m slow --engines spark
	$(VENV)/bin/pytest -m slow --engines spark-connect
	$(VENV)/bin/pytest -m slow --engines postgresql

# Shells count SECONDS themselves, so it is handed over here.
fuzz: setup postgresql
	$(VENV)/bin/python tests/fuzz/fuzzing.py --seconds $(SECONDS) --seed $(SEED)

FIGURES := $(VENV)/bin/python tests/docs/figures.py
BENCH := PYTHONPATH=experiments $(VENV)/bin/python benchmarks

bench: setup
	@$(BENCH)/$(ENGINE)_group_by.py --users $(USERS)
ifeq ($(ENGINE) $(USERS),duckdb 1e6)
	@$(BENCH)/duckdb_measures.py --users $(USERS)
	@$(BENCH)/tune.py --users $(USERS)
endif
	@$(FIGURES)

# What is finished is kept in build/ and not done again; make clean forgets it.

paper: setup
	@for each in keys_retained error_by_users runtime_by_users error_by_bound configurations; do $(VENV)/bin/python experiments/$$each.py || exit; done
	@$(VENV)/bin/python experiments/selection_strategies.py $(WORDS)
	@if [ -n "$(WORDS)" ]; then $(VENV)/bin/python experiments/words.py $(WORDS); \
	  else echo "no words: experiments/words_from_git.py makes a file, then make paper WORDS=FILE"; fi
	@$(FIGURES)

paper-full: paper
	@$(VENV)/bin/python experiments/billion_rows.py --memory-limit 18GB
	@$(FIGURES)

# Nothing is run: it is worked out from exact contributions.
defaults: setup
	@$(VENV)/bin/python experiments/defaults.py $(WORDS)
	@$(FIGURES)

peers: setup
	@PYTHONPATH=experiments $(VENV)/bin/python benchmarks/peers/peers.py
	@$(FIGURES)

clean:
	rm -rf $(VENV) $(DEMO) build
