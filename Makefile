# Requires only Python 3.11 or newer and make.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Two more than processors, because many tests wait for their own processes.
WORKERS = $(shell $(BIN)/python -c 'import os; print(2 + (os.cpu_count() or 1))')
PRODUCT := annals domain commands projections api spark_projections
SOURCES := $(PRODUCT) tests bench docs
# Files at the top whose spelling is checked.
TEXTS := .ci .github $(wildcard *.md *.toml *.yml .*.yaml) Makefile

# Tests start hundreds of processes, which can share compiled sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test-fast test test-long check format docs reference bench image-check clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

install: $(VENV)/.run  ## Install the registry into .venv

run: install  ## Serve the registry on http://127.0.0.1:8080, stored in annals.db
	@$(BIN)/annals serve

PYTEST = $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -rfEs

test-fast: $(VENV)/.dev  ## Run the tests that need only their own process; about a minute, for each save
	@$(BIN)/pytest -q -n auto -m fast $(addprefix tests/,domain commands spec) $(ARGS)

test: $(VENV)/.dev  ## Run all tests but the long ones, also on PostgreSQL and real brokers where available
	@$(PYTEST) -m "not long" $(ARGS)

test-long: export ANNALS_TEST_EXAMPLES ?= 100
test-long: $(VENV)/.dev  ## Run the long tests: series of kills, faults, all generated examples, other people's suites, large logs
	@$(PYTEST) -m "long or generated" $(ARGS)

# .pre-commit-config.yaml has a hook for each; with --keep-going all of them run.
CHECKS := check-format check-lint check-types check-spelling check-links check-dependencies check-reference
.PHONY: $(CHECKS)

check: $(CHECKS)  ## Format, lint, types, spelling, links, dependencies and generated pages

$(CHECKS): $(VENV)/.dev

check-format:
	$(BIN)/ruff format --check $(SOURCES)

check-lint:
	$(BIN)/ruff check $(SOURCES)

check-types:
	$(BIN)/mypy

check-spelling:
	$(BIN)/codespell $(SOURCES) $(TEXTS)

check-links:
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --site-dir $(VENV)/site

# First the product, without the tools of development, then everything with them.
check-dependencies:
	$(BIN)/deptry $(PRODUCT) --optional-dependencies-dev-groups dev,docs
	$(BIN)/deptry $(SOURCES)

# `make reference` writes the pages anew.
check-reference:
	$(BIN)/pytest -q tests/docs/test_reference.py tests/conformance/test_document.py tests/conformance/test_rules.py

format: $(VENV)/.dev  ## Rewrite the sources in the project's format
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

docs: $(VENV)/.dev  ## Build the site of the documents into site/; ARGS=serve shows it while you write
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build)

reference: $(VENV)/.dev  ## Write the generated pages of docs/reference
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m tests.conformance.rules
	@$(BIN)/python -m tests.conformance.document

bench: $(VENV)/.dev  ## Measure, print a table and write docs/benchmarks.md; ARGS="--against COMMIT" or "--peers URL URL" compares
	@$(BIN)/python -m bench $(ARGS)

image-check:  ## Build the image without Docker and try it; needs root, buildah and debootstrap
	@.ci/image

clean:  ## Remove the environment and the files of tools; annals.db stays
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) .ci/environment.py $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml .ci/prepare
	@.ci/prepare
	@echo "Installing into $(VENV), with the tools of development ..."
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --editable '.[amqp]' 2>/dev/null || \
		echo "Left out: events over AMQP, whose client needs a C++ compiler, CMake and OpenSSL's headers" >&2
	@$(BIN)/python -m tests.support.spark_archive >/dev/null 2>&1 || true  # fails without Java
	@touch $@ $(VENV)/.run
