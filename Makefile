# Every target creates the environment .venv first, if it is missing, broken or out of date.
# Requires make and Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '$(RECENT)' 2>/dev/null && echo $$p && break; done)
# One thread for each of three test processes, which suits two cores, since some tests wait for servers.
# Files with slow tests run first (see conftest.py), so that the processes end together.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# The stamp is valid while the interpreter starts and the clone has not moved.
HEALTHY := $(shell $(BIN)/python -c '' 2>/dev/null && [ "$$(cat $(STAMP) 2>/dev/null)" = "$(CURDIR)" ] && echo yes)
ifneq ($(HEALTHY),yes)
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.PHONY: help run ui test faults reliability fuzz check docs format clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: $(STAMP) ## Run the pipeline on the default table; results go to runs/results/departures
	$(BIN)/c2tc run --table departures

ui: $(STAMP) ## Open the dashboard at http://127.0.0.1:3000 (ARGS="--port 3001" chooses another)
	$(BIN)/c2tc ui $(ARGS)

test: $(STAMP) ## Run the tests and the examples in the docstrings (ARGS="-k split" selects)
	$(PYTEST) -m "not faults" $(ARGS)

faults: $(STAMP) ## Run the long tests, most of which kill processes and servers
	$(PYTEST) -m faults $(ARGS)

reliability: $(STAMP) ## Inject all faults, over 200 kills among them, and write docs/reliability.md (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m c2tc_pipeline_tests.tools.reliability

fuzz: $(STAMP) ## Fuzz every reader of untrusted input (CASES=20000; ARGS=--atheris with the extra fuzz)
	OMP_NUM_THREADS=1 $(BIN)/python -m c2tc_pipeline_tests.tools.fuzzing --cases $(or $(CASES),20000) $(ARGS)

check: $(STAMP) ## Lint, check the formatting, the types and, with a network, the packages for known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# The audit waits for the network while mypy runs.
	$(BIN)/python -m c2tc_pipeline_tests.tools.audit & audit=$$!; $(BIN)/mypy; types=$$?; wait $$audit && exit $$types

docs: $(STAMP) ## Build the site in docs/_build/html and run its examples; a warning is an error
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

format: $(STAMP) ## Format the code and apply the safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the environment and all caches; runs/ stays
	rm -rf $(VENV) build docs/_build docs/examples *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is removed before the install and written after it, so an interrupted install starts over.
$(STAMP): pyproject.toml constraints.txt
	@'$(PYTHON)' -c '$(RECENT)' 2>/dev/null || { \
	  echo "No Python 3.11 or newer found (PYTHON is '$(PYTHON)'); name one, as in: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@if [ "$(HEALTHY)" != yes ]; then echo "Making $(VENV)"; '$(PYTHON)' -m venv --clear $(VENV); fi
	@rm -f $(STAMP)
	@echo "Installing into $(VENV); the first time takes some minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ui,bench]'
	@echo "$(CURDIR)" > $(STAMP)
