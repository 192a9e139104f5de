# `make demo` and `make test` are all that a newcomer needs; both make their own environment in .venv.
PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-full bench-probe lint instructions clean

demo: $(VENV)/.ready
	$(BIN)/trainflash demo

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest -m "not full"

test-full: $(VENV)/.ready lint
	$(BIN)/python -m pytest

bench-probe: $(VENV)/.ready  ## what the probe costs a step, in microseconds
	$(BIN)/python bench/probe_cost.py

lint: $(VENV)/.ready
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

instructions: $(VENV)/.ready  ## render CLAUDE.md, AGENTS.md and the other agents' files from templates/instructions
	$(BIN)/python -m trainflash.install --render .

$(VENV)/.ready: pyproject.toml constraints.txt tools/make_environment.sh
	PYTHON="$(PYTHON)" sh tools/make_environment.sh $(VENV)
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache
