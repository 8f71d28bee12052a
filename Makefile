# Every target sets up what it needs: Python 3.11 or later and make are enough.
PYTHON ?= python3
VENV ?= .venv
TEST_JOBS ?= 2
OLDEST ?= .venv-oldest
# --quick takes small shapes, and leaves the tables of the full ones alone.
BENCH_ARGS ?=
BENCH_OUT ?= $(if $(findstring --quick,$(BENCH_ARGS)),build,docs/benchmarks)/speed

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The processes of the test run share the cores; a BLAS that threads as well only slows them.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
COVERED := core estimators

.DELETE_ON_ERROR:
.PHONY: help demo test test-oldest coverage lint format docs bench dist audit screenshot clean

help:
	@echo "make demo    plain and invariant classifier side by side, in seconds"
	@echo "make test    the whole test suite"
	@echo "make docs    the site in build/docs, warnings as errors, opened in chromium"
	@echo "make bench   tables of speed and memory in docs/benchmarks/speed: an hour on an idle machine;"
	@echo "             with BENCH_ARGS=--quick small shapes, in build/speed"
	@echo "make dist    wheel and sdist in dist/, checked, installed and tried in an empty place"
	@echo "make test-oldest  the suite with the oldest versions of what isrlearn needs"
	@echo "make coverage     lines and branches of core and estimators that their tests miss; 95 % needed"
	@echo "make audit   known vulnerabilities of what isrlearn and its extras need (asks the network)"
	@echo "make lint    ruff (lint and format) and mypy, changing nothing"
	@echo "make format  ruff's fixes and formatting, applied"
	@echo "make screenshot   the report's picture in docs/, taken with chromium"
	@echo "make clean   remove what these commands made, the virtual environment included"

demo: $(VENV)/.demo-installed
	$(BIN)/isr demo

test: $(VENV)/.dev-installed
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(TEST_JOBS) $(PYTEST_ARGS)

test-oldest: $(OLDEST)/.installed
	$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -n $(TEST_JOBS) $(PYTEST_ARGS)

coverage: $(VENV)/.dev-installed
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(TEST_JOBS) $(COVERED:%=--cov=isrlearn.%) \
	  --cov-report=term-missing:skip-covered --cov-fail-under=95 \
	  $(COVERED:%=tests/%) tests/hardening tests/io/test_rows.py $(PYTEST_ARGS)

docs: $(VENV)/.docs-installed
	rm -rf build/docs docs/generated
	$(ONE_THREAD) MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_site.py build/docs

bench: $(VENV)/.bench-installed
	set -e; for part in moments fit head growth; do \
	  $(BIN)/python benchmarks/speed.py $$part --out $(BENCH_OUT)/$$part $(BENCH_ARGS); done
	set -e; for part in memory dask import; do \
	  $(BIN)/python benchmarks/scale.py $$part --out $(BENCH_OUT)/$$part $(BENCH_ARGS); done

# Both must hold what is committed, and nothing else.
dist: $(VENV)/.release-installed
	rm -rf dist build/tried
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	mkdir -p build
	git ls-files | grep -v '^\.ci/\|^\.pre-commit' | LC_ALL=C sort > build/committed.txt
	tar -tzf dist/*.tar.gz | cut -d/ -f2- | grep -v '^PKG-INFO$$' | LC_ALL=C sort | diff build/committed.txt -
	$(BIN)/python -m zipfile -l dist/*.whl | sed -n 's,^\(isrlearn/[^ ]*\) .*,src/\1,p' | LC_ALL=C sort \
	  > build/wheel.txt
	grep '^src/isrlearn/' build/committed.txt | diff - build/wheel.txt
	$(PYTHON) -m venv build/tried
	build/tried/bin/python -m pip --disable-pip-version-check install --quiet "$$(echo dist/*.whl)[cli]"
	cd build && tried/bin/isr demo

# Strict, as a package that the service does not know counts as sound otherwise. The index files
# torch's CPU build under its plain version.
audit: $(VENV)/.dev-installed $(VENV)/.release-installed
	mkdir -p build
	$(PIP) freeze --exclude-editable | sed 's/+cpu$$//' > build/audited.txt
	$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r build/audited.txt || \
	  { echo "audit: NOT clean. Either a vulnerability is listed above, or the service of known" \
	    "vulnerabilities did not answer for a package, and then nothing is known." >&2; exit 1; }

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screenshot: $(VENV)/.dev-installed
	$(BIN)/python docs/screenshot.py

clean:
	rm -rf $(VENV) $(OLDEST) build dist docs/gallery docs/generated .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# bin/pip appears last, so a virtual environment that failed half-way is made again.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else 1)' || \
	  { echo "isrlearn needs Python 3.11 or later, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	    "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml | $(BIN)/pip
	$(PIP) install --quiet --editable ".[cli]"
	@touch $@

$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.bench-installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) install --quiet --constraint constraints.txt --editable ".[bench]"
	@touch $@

$(VENV)/.docs-installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

$(VENV)/.release-installed: pyproject.toml | $(BIN)/pip
	$(PIP) install --quiet --editable ".[release]"
	@touch $@

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --constraint constraints-oldest.txt --editable ".[test]"
	@touch $@
