# Every target sets up what it needs: a virtual environment in .venv, made with the newest Python found.
# `make demo` and `make test` are all that a newcomer has to know.

# The first Python that is new enough and really runs (a version manager's shim may be there and fail).
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
RUN_STAMP := .venv/.ready-to-run
DEV_STAMP := .venv/.ready-to-develop
SAY := printf '\n==> %s\n'

# In CI the slow tests run too: they install packages into environments of their own.
MARKERS := not bench$(if $(CI),, and not slow)

.PHONY: help demo test lint format bench docs dashboards programs stack up down clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: $(RUN_STAMP) ## watch a small fleet of ticket agents, live (ARGS="--degrade-after 30")
	@$(BIN)/reach-otel demo $(ARGS)

test: lint ## check style and types, then run all tests (ARGS="-k name")
	@$(SAY) "pytest: unit, property, golden, layout, generated docs, end to end"
	@$(BIN)/python -m pytest -m "$(MARKERS)" $(ARGS)

lint: $(DEV_STAMP) ## check style and types
	@$(SAY) "ruff: rules"
	@$(BIN)/ruff check .
	@$(SAY) "ruff: format"
	@$(BIN)/ruff format --check .
	@$(SAY) "mypy: strict types"
	@$(BIN)/mypy

format: $(DEV_STAMP) ## format the code and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(DEV_STAMP) ## measure speed and memory, as ratios in one run
	@$(BIN)/python -m tests.bench $(ARGS)

docs: $(DEV_STAMP) ## write the generated blocks of README.md and the example files anew
	@$(BIN)/python -m tools.docs

dashboards: $(DEV_STAMP) ## write the Grafana dashboards' JSON anew from their code
	@$(BIN)/python -m dashboards

programs: $(DEV_STAMP) ## build the Collector and the trace store that tests and `make stack` run (needs Go)
	@$(BIN)/python -m tools.programs

stack: $(DEV_STAMP) ## run demo, Collector, two scorers, Prometheus and Alertmanager without Docker (ARGS="--degrade-after 120")
	@$(BIN)/python -m tools.stack $(ARGS)

up: ## run all of that and Grafana with Docker, and print the addresses (DEGRADE_AFTER=120)
	@"$(or $(PYTHON),python3)" tools/up.py $(ARGS)

down: ## end it again, and keep its data (ARGS=--volumes: forget it)
	@"$(or $(PYTHON),python3)" tools/up.py down $(ARGS)

clean: ## remove the virtual environment and all caches
	rm -rf .venv .stack build dist collector/bin .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "reach-otel needs Python 3.11 or newer with the venv module (on Debian: python3-venv);" \
		"none was found. If it has another name, say: make PYTHON=/path/to/python ..." >&2; exit 1; }
	@$(SAY) "virtual environment in .venv with $(PYTHON)"
	@"$(PYTHON)" -m venv --clear .venv

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@$(SAY) "installing reach-otel and what it needs"
	@$(PIP) install --editable .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@$(SAY) "installing reach-otel, what it needs, and the tools to test it"
	@$(PIP) install --upgrade 'pip>=25.1' # knows --group
	@$(PIP) install --editable . --group dev
	@touch $@ $(RUN_STAMP)
