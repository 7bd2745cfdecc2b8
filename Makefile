# Everything lives in .venv; each stamp is renewed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Bytecode is kept whatever the shell says: hundreds of tests start a process, and each would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE
# Nor does pip compile what it installs, most of which is never imported: that took longer than to unpack it.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo serve-demo test test-fast test-browser test-service docs linkcheck dist lint bench mutants soak clean help

help:
	@echo "make demo   compare six policies on four problems, and write demo/report.html"
	@echo "make serve-demo   the decision service with a shop on it and a live page; KILL=1 stops and kills the server at random, and nothing is lost"
	@echo "make test   run every test, docstring and documentation example"
	@echo "make test-fast   two cases of each test that neither compiles (JAX, LLVM: marked compiles) nor is slow (marked slow)"
	@echo "make docs   the documentation site with its gallery, warnings as errors: build/docs/index.html"
	@echo "make linkcheck   ask every address outside the site (needs a network; links inside are checked by make docs)"
	@echo "make test-browser   the report page, the live page and the site in a real browser (Debian's Chromium)"
	@echo "make test-service   the service and its database on a real PostgreSQL (Debian's): takeovers, kills, hostile requests"
	@echo "make soak   hostile records, kills, faults, flipped bits and compiled rounds by the million: an hour or two, can be interrupted and goes on; soak/results.json"
	@echo "make dist   wheel and sdist in dist/, each tried in an environment of its own: README's examples, the tests that ship"
	@echo "make lint   formatting, lint, types, import contract, how much is typed Any"
	@echo "make bench  time rounds, the slowest round, durable sessions, sweeps, every policy, programs against cvxpy, adapters against their libraries, fraud against PyTorch; growth exponents; streams; then all sides beside their peers: benchmarks/results.md"
	@echo "make mutants   change one thing in a formula at a time and see whether a test notices: bounds, certificates, learners, domains, budgets"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || ($(PYTHON) -m pip install --quiet --user --break-system-packages virtualenv && $(PYTHON) -m virtualenv $(VENV))

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[report]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.serve: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[serve]'
	@touch $@

$(VENV)/.browser: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[browser]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[docs]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dist: pyproject.toml | $(BIN)/python
	$(PIP) 'build>=1.2'
	@touch $@

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[lint]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

# Peers to compare with, each on its own and beside what the tests pin: one that does not install is skipped, and results.md says so.
PEERS := "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['bench'], sep='\n')"
$(VENV)/.bench: $(VENV)/.test
	@$(BIN)/python -c $(PEERS) | while read peer; do \
	  $(PIP) --editable '.[test]' "$$peer" || echo "$$peer does not install here: skipped" >&2; done
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/bridle compare halfspaces minimax late-constraint violation-seeking --horizons 500,1000,2000,4000 --seeds 5 --out demo

serve-demo: $(VENV)/.serve
	$(BIN)/python examples/service_shop.py --show $(if $(KILL),--kill)

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS)

# A test that compiles without its mark fails here.
test-fast: $(VENV)/.test
	$(BIN)/python -m pytest --fast -n $(WORKERS)

# Pages need no network; what an example or a picture makes is kept in build/ for the next time.
SPHINX := $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees
docs: $(VENV)/.docs
	$(SPHINX) -b html docs build/docs
	$(BIN)/python tools/check_site.py build/docs
	@echo "the site: build/docs/index.html"

linkcheck: $(VENV)/.docs
	$(SPHINX) -b linkcheck docs build/links

# Chromium is not on PyPI: where it is missing and we may, Debian's packages are installed.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)
HAVE_CHROMIUM := command -v chromium >/dev/null && command -v chromedriver >/dev/null
test-browser: $(VENV)/.browser
	@$(HAVE_CHROMIUM) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium chromium-driver >/dev/null; } || true
	@$(HAVE_CHROMIUM) || { echo "make test-browser needs chromium and chromedriver: apt-get install chromium chromium-driver" >&2; exit 1; }
	@[ -f build/docs/index.html ] || $(MAKE) docs
	$(BIN)/python -m pytest tests/browser

# PostgreSQL is not on PyPI: where it is missing and we may, Debian's package is installed. Its own server is not needed: tests start one.
HAVE_POSTGRES := ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null
test-service: $(VENV)/.test
	@$(HAVE_POSTGRES) || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq postgresql >/dev/null; } || true
	@$(HAVE_POSTGRES) || { echo "make test-service needs PostgreSQL: apt-get install postgresql" >&2; exit 1; }
	$(BIN)/python -m pytest tests/postgres

dist: $(VENV)/.dist
	$(BIN)/python tools/dist.py

soak: $(VENV)/.test
	$(BIN)/python tools/soak.py

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/any_share.py

# The mutants that have a name come first, since they take a minute. What is known from the last run is not tried again.
mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py --named --workers $(WORKERS)
	$(BIN)/python tools/mutants.py --workers $(WORKERS)

# The page of results comes first, and is written again when the parts that it quotes are there.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/fraud.py
	$(BIN)/python benchmarks/peers.py --render
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/slowest.py
	$(BIN)/python benchmarks/durable.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/programs.py
	$(BIN)/python benchmarks/adapters.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/hindsight.py
	$(BIN)/python benchmarks/fraud_stream.py
	$(BIN)/python benchmarks/streams.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/exponents.py

clean:
	rm -rf $(VENV) .mutants build demo soak docs/gallery docs/_pictures docs/reference/*/ benchmarks/exponents benchmarks/streams .pytest_cache .mypy_cache .ruff_cache .hypothesis
