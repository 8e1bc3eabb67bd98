# Two commands for a fresh clone: `make demo` and `make test`. Each makes .venv and installs
# what it needs, from the versions pinned in constraints.txt, the first time it runs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-all lint format bench kernels clean

demo: $(READY)
	$(BIN)/forewise demo

test: lint
	$(BIN)/pytest -n 2 -m "not slow"

test-all: lint
	$(BIN)/pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e "lab[bench]"
	$(BIN)/forewise-lab bench solver

# Compiled kernels do not notice changes in the files they call.
kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e lab
	@touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
