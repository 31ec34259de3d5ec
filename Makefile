# Needs Python 3.11 or newer and make; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check format bench fuzz-input rules rule-mutations test-xla dist clean

# Re-installed whenever pyproject.toml changes. Compiled at once, as pip does with a wheel: where Python is told not to write bytecode, each
# start of the command would compile everything anew.
$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no python3.11 or python3 on PATH" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11; set PYTHON=" >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q scalify rules
	@touch $@

demo: $(STAMP)
	@$(BIN)/python -m benchmarks.demo

test: $(STAMP)
	$(BIN)/python -m pytest

# What CI runs besides the tests.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Thousands of random, damaged and hostile inputs; minutes. COUNT and SEED select.
fuzz-input: $(STAMP)
	$(BIN)/python -m tests.support.fuzz $(or $(COUNT),2000) $(or $(SEED),0)

# Random programs on XLA and on the reference interpreter (needs the jax extra); about 5 a second. COUNT and SEED select.
test-xla: $(STAMP)
	@$(BIN)/python -c 'import jax' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,jax]'
	$(BIN)/python -m tests.xla $(or $(COUNT),1000) $(or $(SEED),0)

# Proves every rule, law and transfer function again, and writes the record of the proofs and the page that shows them.
rules: $(STAMP)
	$(BIN)/scalify rules --check --record rules/scalify_rules/proofs.json
	$(BIN)/scalify rules --markdown > docs/rules.md

# Deletes every side condition of every rule and law in turn; a check must notice each. Minutes.
rule-mutations: $(STAMP)
	$(BIN)/python -m tests.support.rule_mutations

bench: $(STAMP)
	$(BIN)/python -m benchmarks

dist: $(STAMP)
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
