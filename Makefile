# Every target sets up what it needs: Python 3.11 or later and make are enough.
PYTHON ?= python3
VENV ?= .venv
TEST_JOBS ?= 2
OLDEST ?= .venv-oldest
# --quick measures small shapes and writes to build/, so that the committed tables stay unchanged.
BENCH_ARGS ?=
BENCH_OUT ?= $(if $(findstring --quick,$(BENCH_ARGS)),build,docs/benchmarks)/speed

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The test processes share the cores; BLAS threads in each of them would only slow them down.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
COVERED := core estimators

.DELETE_ON_ERROR:
.PHONY: help demo test test-oldest coverage fuzz lint format docs bench dist audit screenshot clean

help:
	@echo "make demo    compare a plain classifier with ISR, in seconds"
	@echo "make test    run the whole test suite"
	@echo "make docs    build the site in build/docs; warnings are errors, every page is opened in Chromium"
	@echo "make bench   measure speed and memory, tables in docs/benchmarks/speed: an hour on an idle machine;"
	@echo "             with BENCH_ARGS=--quick, small shapes and tables in build/speed"
	@echo "make dist    build wheel and sdist in dist/, check them, run the demo in an empty environment"
	@echo "make test-oldest  run the suite with the oldest supported versions of the dependencies"
	@echo "make coverage     measure branch coverage of core and estimators; at least 95 % is required"
	@echo "make fuzz    thousands of damaged files, each refused by one of our errors, and of commands"
	@echo "make audit   look up known vulnerabilities of the installed packages (needs the network)"
	@echo "make lint    run ruff (lint and format) and mypy; changes nothing"
	@echo "make format  apply ruff's fixes and formatting"
	@echo "make screenshot   take the picture of a report in docs/ with Chromium"
	@echo "make clean   remove everything that these commands created, including the virtual environments"

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

fuzz: $(VENV)/.dev-installed
	$(ONE_THREAD) $(BIN)/python tests/fuzz/checkpoints.py
	$(ONE_THREAD) $(BIN)/python tests/fuzz/files.py
	$(ONE_THREAD) $(BIN)/python tests/fuzz/command_line.py

docs: $(VENV)/.docs-installed
	rm -rf build/docs docs/generated
	$(ONE_THREAD) MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_site.py build/docs

bench: $(VENV)/.bench-installed
	set -e; for part in moments fit head growth cases; do \
	  $(BIN)/python benchmarks/speed.py $$part --out $(BENCH_OUT)/$$part $(BENCH_ARGS); done
	set -e; for part in memory sparse dask import; do \
	  $(BIN)/python benchmarks/scale.py $$part --out $(BENCH_OUT)/$$part $(BENCH_ARGS); done

# Wheel and sdist must contain the committed files and nothing else.
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

# Without --strict, a package that the service does not know would pass. The index lists torch's
# CPU build under its plain version.
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

# bin/pip is created last, so an incomplete virtual environment is created again.
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
