# Everything lives in .venv; each stamp is renewed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench clean help

help:
	@echo "make demo   play the paper's three algorithms on four problems"
	@echo "make test   run every test, docstring and documentation example"
	@echo "make lint   formatting, lint, types, import contract"
	@echo "make bench  time rounds, sweeps, every policy, programs against cvxpy, and a comparison of 1,000 games"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || ($(PYTHON) -m pip install --quiet --user --break-system-packages virtualenv && $(PYTHON) -m virtualenv $(VENV))

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[test,lint]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/bridle demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.test
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/programs.py
	$(BIN)/python benchmarks/compare.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
