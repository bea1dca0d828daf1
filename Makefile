# Everything runs in .venv, which is made from requirements-lock.txt when it is missing or out of date.
# Needed beforehand: Python 3.11 or newer with venv, make, git.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint format types unit bench soak lock clean
.PHONY: session session-list session-tree session-chain-check session-gc

# Sessions that session-gc keeps.
SESSION_KEEP ?= 100

demo: $(READY) ## import the sample conversations, verify them and look at the store
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash fixtures/demo.sh

test: lint types unit ## what a change must pass

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -n 2

bench: $(READY) ## the table of benchmarks, against peers in the same run
	$(BIN)/python -m bench

soak: $(READY) ## hours if need be: kills, faults, long random runs
	$(BIN)/python -m pytest -m soak

session: $(READY) ## ask in a session at the terminal: a new one, or SID=...
	@$(BIN)/objstore session $(if $(SID),--sid "$(SID)")

session-list: $(READY) ## list the sessions
	@$(BIN)/objstore session --list

session-tree: $(READY) ## print the tree of the session SID=...
	@test -n "$(SID)" || { echo "make: which session? make session-tree SID=..." >&2; exit 2; }
	@$(BIN)/objstore session --tree --sid "$(SID)"

session-chain-check: $(READY) ## check the hashes of all sessions, or of SID=...
	@$(BIN)/objstore session --chain-check $(if $(SID),--sid "$(SID)")

session-gc: $(READY) ## keep the SESSION_KEEP sessions with the latest events
	@$(BIN)/objstore session --gc "$(SESSION_KEEP)"

$(READY): requirements-lock.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found: set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## pin again what pyproject.toml asks for; needs uv
	uv pip compile --quiet --universal --generate-hashes --extra dev --no-emit-index-url --no-header \
		pyproject.toml -o requirements-lock.txt

clean:
	rm -rf .venv .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
