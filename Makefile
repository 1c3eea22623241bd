# Every target that needs the environment makes it first; a second call finds it and does not install again.
# Only make and Python 3.11 or newer have to be there. The folder .venv belongs to this file: it is remade when broken.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '$(RECENT)' 2>/dev/null && echo $$p && break; done)
# Threads of several test processes only get in each other's way on two cores. There are three processes, because some
# tests wait for servers; slow files come first (see conftest.py), so that the processes end together.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# The stamp counts only while the interpreter starts and the clone is where it was installed.
HEALTHY := $(shell $(BIN)/python -c '' 2>/dev/null && [ "$$(cat $(STAMP) 2>/dev/null)" = "$(CURDIR)" ] && echo yes)
ifneq ($(HEALTHY),yes)
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.PHONY: help run ui test faults reliability fuzz check format clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: $(STAMP) ## Run the pipeline on the default table; results go to runs/results/flights
	$(BIN)/c2tc run --table flights

ui: $(STAMP) ## Open the dashboard at http://127.0.0.1:3000 (ARGS="--port 3001" chooses another)
	$(BIN)/c2tc ui $(ARGS)

test: $(STAMP) ## Run the tests and the examples in the docstrings (ARGS="-k split" selects)
	$(PYTEST) -m "not faults" $(ARGS)

faults: $(STAMP) ## Run the long tests, which stop processes and servers in the middle of their work
	$(PYTEST) -m faults $(ARGS)

reliability: $(STAMP) ## Inject all faults, over 200 kills among them, and write docs/reliability.md (some minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m c2tc_pipeline_tests.tools.reliability

fuzz: $(STAMP) ## Feed every reader with hostile input (CASES=120000 for the figures in docs/security.md)
	OMP_NUM_THREADS=1 $(BIN)/python -m c2tc_pipeline_tests.tools.fuzzing --cases $(or $(CASES),20000) $(ARGS)

check: $(STAMP) ## Lint, check the formatting, the types and, with a network, the packages for known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# The audit waits for answers while mypy computes.
	$(BIN)/python -m c2tc_pipeline_tests.tools.audit & audit=$$!; $(BIN)/mypy; types=$$?; wait $$audit && exit $$types

format: $(STAMP) ## Format the code and apply the safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the environment and all caches; runs/ stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp goes before the install and comes back after it, so an interrupted install starts over from an empty .venv.
$(STAMP): pyproject.toml constraints.txt
	@'$(PYTHON)' -c '$(RECENT)' 2>/dev/null || { \
	  echo "No Python 3.11 or newer found (PYTHON is '$(PYTHON)'); name one, as in: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@if [ "$(HEALTHY)" != yes ]; then echo "Making $(VENV)"; '$(PYTHON)' -m venv --clear $(VENV); fi
	@rm -f $(STAMP)
	@echo "Installing into $(VENV); the first time takes some minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ui,bench]'
	@echo "$(CURDIR)" > $(STAMP)
