# `make demo` and `make test` are all that a newcomer needs; both make their own environment in .venv.
PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
export OMP_NUM_THREADS ?= 1
PARALLEL ?= -n auto --maxprocesses 4 --dist worksteal

.PHONY: bench-changing bench-sandbox bench-secrets bench-ranks bench-gate bench-what-if bench-profile bench-profile-exact bench-traces demo test test-full bench-real bench-probe bench-ceilings bench-attribution bench-planted bench-fidelity bench-judges bench-optimize bench-verdicts gpu-check lint instructions clean

demo: $(VENV)/.ready
	$(BIN)/trainflash demo

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest $(PARALLEL) -m "not full"

test-full: test
	$(BIN)/python -m pytest $(PARALLEL) -m "full and not alone"
	$(BIN)/python -m pytest -m "full and alone"

bench-probe: $(VENV)/.ready  ## what the probe costs a step, in microseconds
	$(BIN)/python bench/probe_cost.py

bench-attribution: $(VENV)/.ready  ## phases against timers placed by hand, in points, over 32 programs
	$(BIN)/python bench/attribution.py $(ATTRIBUTION)

bench-ceilings: $(VENV)/.ready  ## measured ceilings against the real fix; about half an hour
	$(BIN)/python bench/ceilings.py

gpu-check: $(VENV)/.ready  ## everything that only a CUDA device can show; says so and ends well without one
	$(BIN)/python bench/gpu_check.py --record

bench-fidelity: $(VENV)/.ready  ## broken, honest and consent cases of a catalogue; FIDELITY="--half kept" and so on
	$(BIN)/python bench/fidelity/run.py $(FIDELITY)

bench-judges: $(VENV)/.ready  ## which judge lets which broken speed-up pass; JUDGES="--half all --judges PYTHON"
	$(BIN)/python bench/judges/run.py $(JUDGES)

bench-real: $(VENV)/.ready  ## the first finding, places, shares and phases on real programs; REAL="--base DIR --half open"
	$(BIN)/python bench/real/run.py $(REAL)

bench-real-verdicts: $(VENV)/.ready  ## the judge on experts' and hurried engineers' changes to real programs; REAL="--base DIR"
	$(BIN)/python bench/real/verdicts.py $(REAL)

bench-planted: $(VENV)/.ready  ## the first finding on programs that are slow for a known reason; PLANTED="--half kept" and so on
	$(BIN)/python bench/planted/run.py $(PLANTED)

bench-optimize: $(VENV)/.ready  ## what `optimize auto` saves beside an expert's edit; about ten minutes a program; OPTIMIZE="--only NAME"
	$(BIN)/python bench/optimize.py $(OPTIMIZE)

bench-verdicts: $(VENV)/.ready  ## false and missed verdicts, live and replayed; about an hour; MINUTES=20 for less
	$(BIN)/python bench/verdicts.py live --minutes $(or $(MINUTES),60)
	$(BIN)/python bench/verdicts.py replay
	$(BIN)/python bench/verdicts.py cost

bench-changing: $(VENV)/.ready  ## the factor of the whole run where steps change along it, against whole runs; about an hour; CHANGING="--minutes 20"
	$(BIN)/python bench/changing.py $(CHANGING)
	$(BIN)/python bench/changing_noise.py

bench-gate: $(VENV)/.ready  ## false and missed failures of the gate, live and replayed; about an hour; MINUTES=20 for less
	$(BIN)/python bench/verdicts.py live --minutes $(or $(MINUTES),60)
	$(BIN)/python bench/verdicts.py live --minutes $(or $(MINUTES),60) --factor 0.9 --programs steady,ragged
	$(BIN)/python bench/gate.py spread --runs 10
	$(BIN)/python bench/gate.py replay

bench-ranks: $(VENV)/.ready  ## a job of 10,000 ranks and 1,000 steps, read, summarized and diagnosed; two minutes
	$(BIN)/python bench/many_ranks.py

bench-what-if: $(VENV)/.ready  ## predictions about other ranks, against simulated jobs whose truth is known; seconds
	$(BIN)/python bench/what_if.py

bench-profile: $(VENV)/.ready  ## how fast traces are read and with how much memory, beside json.load, HTA and protobuf; PROFILE="--mb 4096"
	$(BIN)/python bench/profile_decode.py $(PROFILE)

bench-traces: $(VENV)/.ready  ## first cause and advice on public traces beside an expert's reading; TRACES="--base DIR --half open"
	$(BIN)/python bench/traces/run.py $(TRACES)

bench-profile-exact: $(VENV)/.ready  ## counts, sums, unions, spans and step times against a computation of its own; TRACES="FILE…"
	$(BIN)/python bench/profile_exact.py $(TRACES)

bench-sandbox: $(VENV)/.ready  ## `sandbox create` beside a plain `git worktree add`, 20,000 files; SANDBOX="--files 2000"
	$(BIN)/python bench/sandbox.py $(SANDBOX)

bench-secrets: $(VENV)/.ready  ## what redaction finds and what it hides, beside other detectors where they are there
	$(BIN)/python bench/secrets_found.py $(SECRETS)

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
