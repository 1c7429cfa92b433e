# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The example of a plug-in is installed beside cuebench, so that its tests and all others see an installed plug-in.
PLUGIN := examples/plugin
# The stamp's name carries a hash of what is to be installed, so a change reinstalls and nothing else does.
STAMP  := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt $(PLUGIN)/pyproject.toml src/cuebench/study/web/vendor.toml | cksum | cut -d' ' -f1)
# uv does not read pip's settings: hand on the folder of local wheels if pip has one.
LINKS  := $(shell $(PYTHON) -m pip config get global.find-links 2>/dev/null)

# Hundreds of processes are started by the tests: what they import is compiled once, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install browser demo test test-all lint types unit slow faults fuzz mutants docs dist packages bench clean

install: $(STAMP)

$(STAMP):
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --python $(BIN)/python --quiet -c constraints.txt $(if $(LINKS),--find-links $(LINKS)) -e ".[all,dev]"
	$(BIN)/uv pip install --python $(BIN)/python --quiet $(if $(LINKS),--find-links $(LINKS)) --no-deps -e $(PLUGIN)
	$(BIN)/python -m cuebench.study.vendor || true  # jsPsych for the page of studies; without npm all else works
	rm -f $(VENV)/.installed-*
	touch $@

# Reports are tested in a real browser: Debian's, where this runs as root and apt is there. Elsewhere those tests skip and
# say so.
browser:
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || true

demo: install
	$(BIN)/cuebench demo --out runs/demo
	@echo 'cuebench is in .venv: . $(BIN)/activate makes it a command of this shell; then docs/tutorials/model.md'

lint: install
	$(BIN)/ruff check src tests benchmarks examples tools gallery
	$(BIN)/ruff format --check src tests benchmarks examples tools gallery

types: install
	$(BIN)/mypy

unit: install browser
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

slow: install browser
	$(BIN)/pytest -n 2 --dist loadgroup -m slow

test: lint types unit

# What CI runs: the tests that take more than a few seconds each as well.
test-all: test slow

# All faults, not the seeded few of `make test`: more than a thousand kills, every bit of a shard; some ten minutes.
faults: install
	CUEBENCH_FAULTS=all $(BIN)/pytest -n 2 --timeout 1800 tests/faults tests/observers/chat -s

# Damages formulas in a copy of the source, one after the other, and looks whether the tests notice; some ten minutes.
mutants: install
	$(BIN)/python tests/mutants/mutants.py

# Attacks every reader of foreign files, SECONDS of CPU time each, JOBS at a time; atheris guides a second round where it
# is installed (pip install atheris). What was done adds up in tests/fuzz/tally.csv. Then it looks for new examples that
# break a property test; `make test` has the same ones each time.
SECONDS ?= 60
JOBS ?= 2
FUZZ = $(BIN)/python tests/fuzz/attack.py --seconds $(SECONDS) -j $(JOBS) --tally tests/fuzz/tally.csv
fuzz: install
	$(FUZZ)
	if $(BIN)/python -c "import atheris" 2>/dev/null; then $(FUZZ) --atheris; fi
	FUZZ_INPUTS=$$(( $(SECONDS) * 50 )) $(BIN)/pytest -n 0 -q --timeout 0 tests/fuzz -k structure
	$(BIN)/pytest -n $(JOBS) -q --timeout 0 --hypothesis-profile new $$(grep -rl --include=*.py "^from hypothesis" tests)

# The documentation as a site, in build/site; links that lead nowhere are refused.
docs: install
	$(BIN)/python tools/site.py

# The packages, in dist: jsPsych is packed with them. The same files are built from the same commit.
dist: install
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist $(if $(LINKS),--find-links $(LINKS))

# The wheel in an empty environment with each extra in turn, those that install gigabytes too.
packages: install
	CUEBENCH_EXTRAS=all $(BIN)/pytest -n 0 --timeout 1800 tests/test_packages.py tests/test_extras.py

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) runs .mypy_cache .pytest_cache .ruff_cache
