# Two commands for a fresh clone: `make demo` and `make test`. Each makes .venv and installs
# what it needs, from the versions pinned in constraints.txt, the first time it runs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-all browser lint format bench core studio docs wheel release-check clean

demo: $(READY)
	$(BIN)/forewise demo

test: lint browser
	$(BIN)/pytest -n 2 -m "not slow"

test-all: lint browser
	$(BIN)/pytest -n 2

# The tests of the service's page need a Chromium. Continuous integration installs Debian's; on a
# computer of your own that is yours to decide, and without one these tests are skipped.
browser:
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null \
		|| { [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
			&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null; } \
		|| echo "No Chromium here: the page's tests will be skipped (apt install chromium)."

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

# The compiled core, anew after a change in src/core, in the place of the installed one.
core: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nanobind cmake ninja
	$(BIN)/cmake -S . -B build/core -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
		-DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
		-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) $(CORE_OPTIONS)
	$(BIN)/cmake --build build/core
	$(BIN)/cmake --install build/core --prefix $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))")

# The page of `forewise serve`, from studio/ to src/forewise/serving/studio/; needs Node 20.
studio:
	cd studio && npm ci && npm run build

# The documentation site, in site/. It reads the sources and needs no library: an environment of its
# own, so that nobody else has to install it. Warnings are errors.
DOCS := .venv-docs
docs: $(DOCS)/.ready
	rm -rf site
	mkdir -p build
	$(DOCS)/bin/zensical build --clean --strict > build/docs.log 2>&1 || { cat build/docs.log; exit 1; }
	! grep -iE "^griffe|warning" build/docs.log
	$(DOCS)/bin/python .ci/check_site.py site

$(DOCS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $$($(PYTHON) -c "import tomllib; \
		extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*extras['docs'])")
	@touch $@

# The wheel for the Python that runs this, in dist/; docs/releasing.md says how one for any Linux is built.
wheel:
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# What has to hold before a release; see docs/releasing.md.
release-check: docs
	$(PYTHON) .ci/release_check.py

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e lab
	@touch $(READY)

clean:
	rm -rf $(VENV) $(DOCS) site .cache .pytest_cache .mypy_cache .ruff_cache
