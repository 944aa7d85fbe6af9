# Everything here sets itself up: a virtual environment, the Node packages, the built lab extension.
# A step runs again only if what it depends on has changed.

SHELL := /bin/bash
.DELETE_ON_ERROR:
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.DEFAULT_GOAL := help

VENV := .venv
VENV_IK630 := .venv-ik630
VENV_PEER := .venv-peer
VENV_OLDEST := .venv-oldest-lab
VENV_COLLABORATION := .venv-collaboration
VENV_HUB5 := .venv-hub5
VENV_ENTERPRISE_GATEWAY := .venv-enterprise-gateway
BIN := $(VENV)/bin
PATH := $(CURDIR)/$(BIN):$(PATH):$(CURDIR)/node_modules/.bin
export PATH
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export YARN_ENABLE_TELEMETRY := 0
unexport PYTHONPATH VIRTUAL_ENV
# Hundreds of processes are started here: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# Extra arguments: make demo ARGS="--no-browser --port 9999", make pytest ARGS="tests/core -x"
ARGS ?=

PYTHON_READY := $(VENV)/.stamp-python
IK630_READY := $(VENV_IK630)/.stamp-python
OLDEST_READY := $(VENV_OLDEST)/.stamp-python
COLLABORATION_READY := $(VENV_COLLABORATION)/.stamp-python
HUB5_READY := $(VENV_HUB5)/.stamp-python
ENTERPRISE_GATEWAY_READY := $(VENV_ENTERPRISE_GATEWAY)/.stamp-python
NODE_READY := node_modules/.stamp-node
LAB_BUILT := jupyter_agentbox/labextension/package.json
LAB_LINKED := $(VENV)/.stamp-labextension
LAB_SOURCES := $(shell find labextension -type f -not -path '*/lib/*' -not -path '*/test/*' -not -name '*.tsbuildinfo' -not -name '*.spec.*' 2>/dev/null)

.PHONY: help
help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- Environment -------------------------------------------------------------------------------------------------

$(PYTHON_READY): pyproject.toml $(wildcard jupyter-config/*.json jupyter-config/*/*.json)
	@python=$$(.ci/find-python) || exit 1; \
	if [ ! -x $(BIN)/python ]; then \
	    echo "Creating $(VENV) with $$python"; \
	    "$$python" -c 'import ensurepip' 2>/dev/null || .ci/system-packages python3-venv:no-such-program; \
	    "$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	fi
	@# An editable install copies what stands under shared-data; the link below replaces the copy.
	@rm -rf $(VENV)/share/jupyter/labextensions/jupyter-agentbox $(LAB_LINKED)
	@mkdir -p jupyter_agentbox/labextension
	SKIP_JUPYTER_BUILDER=1 $(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(IK630_READY): pyproject.toml | $(PYTHON_READY)
	@[ -x $(VENV_IK630)/bin/python ] || $(BIN)/python -m venv $(VENV_IK630)
	$(VENV_IK630)/bin/python -m pip install --quiet 'ipykernel==6.30.*' comm ipywidgets
	SKIP_JUPYTER_BUILDER=1 $(VENV_IK630)/bin/python -m pip install --quiet --no-deps --editable .
	@touch $@

$(OLDEST_READY): pyproject.toml | $(PYTHON_READY)
	@[ -x $(VENV_OLDEST)/bin/python ] || $(BIN)/python -m venv $(VENV_OLDEST)
	SKIP_JUPYTER_BUILDER=1 $(VENV_OLDEST)/bin/python -m pip install --quiet 'jupyterlab==4.4.*' 'notebook==7.4.*' ipywidgets --editable .
	@touch $@

$(COLLABORATION_READY): pyproject.toml | $(PYTHON_READY)
	@[ -x $(VENV_COLLABORATION)/bin/python ] || $(BIN)/python -m venv $(VENV_COLLABORATION)
	SKIP_JUPYTER_BUILDER=1 $(VENV_COLLABORATION)/bin/python -m pip install --quiet 'jupyter-collaboration>=5' ipywidgets --editable .
	@touch $@

# The built lab extension is copied into it.
$(HUB5_READY): pyproject.toml $(LAB_BUILT) | $(PYTHON_READY)
	@[ -x $(VENV_HUB5)/bin/python ] || $(BIN)/python -m venv $(VENV_HUB5)
	SKIP_JUPYTER_BUILDER=1 $(VENV_HUB5)/bin/python -m pip install --quiet --editable '.[dev]' 'jupyterhub==5.*'
	@touch $@

# It needs a jupyter_client and a jupyter_server that are older than those of its kernels, which run in the first one.
$(ENTERPRISE_GATEWAY_READY): | $(PYTHON_READY)
	@[ -x $(VENV_ENTERPRISE_GATEWAY)/bin/python ] || $(BIN)/python -m venv $(VENV_ENTERPRISE_GATEWAY)
	$(VENV_ENTERPRISE_GATEWAY)/bin/python -m pip install --quiet 'jupyter-enterprise-gateway==3.*'
	@touch $@

$(NODE_READY): package.json $(wildcard yarn.lock .yarnrc.yml) | $(PYTHON_READY)
	@.ci/check-node
	jlpm install --immutable
	@touch $@

$(LAB_BUILT): $(NODE_READY) package.json $(wildcard tsconfig*.json) $(LAB_SOURCES)
	jlpm build:prod
	@touch $@

$(LAB_LINKED): $(PYTHON_READY) | $(LAB_BUILT)
	jupyter-builder develop --overwrite .
	@touch $@

.PHONY: install
install: $(PYTHON_READY) $(LAB_BUILT) $(LAB_LINKED) ## Set up .venv and build the lab extension

# --- Use ---------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: install ## Open JupyterLab on examples/demo.ipynb and agent.ipynb, with the bundled MCP server and scripted model
	$(BIN)/python -m jupyter_agentbox.demo --directory .demo $(ARGS)

DEMO_HUB_CONFIG ?= examples/hub/jupyterhub_config.py

.PHONY: demo-hub
demo-hub: install ## Start a JupyterHub, its proxy, the Hub service and two users on this machine
	mkdir -p .demo-hub
	cd .demo-hub && python -m jupyterhub -f $(abspath $(DEMO_HUB_CONFIG)) $(ARGS)

# --- Check -------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: lint-python lint-lab ## Check style and types of the Python and TypeScript code

.PHONY: lint-python
lint-python: $(PYTHON_READY)
	ruff check
	ruff format --check
	mypy

.PHONY: lint-lab
lint-lab: $(NODE_READY)
	jlpm lint:check

.PHONY: test
test: install $(IK630_READY) system-packages ## Run every check and every test
	@# Each of these keeps one processor busy; test-core runs what the last line leaves out.
	.ci/side-by-side $(MAKE) --jobs=$(CHECKS_AT_ONCE) --output-sync=target SIDE_BY_SIDE=1 lint-lab lint-python jest docs test-core
	$(MAKE) pytest ARGS=--ignore=tests/core
	$(MAKE) test-user

#: How many of the checks that need no kernel run at once.
CHECKS_AT_ONCE ?= 2

#: What needs neither a kernel, a browser nor a sandbox.
UNIT_TESTS := $(addprefix tests/,core protocol services storage codegen processes contents) \
    $(addprefix tests/test_,layers.py docs.py background.py composition.py)

#: Leaves out those of them that need PostgreSQL, or wait until a claim runs out.
NOT_SLOW := -k "not postgresql" --ignore=tests/storage/test_service_claim.py

.PHONY: test-quick
test-quick: $(PYTHON_READY) $(NODE_READY) ## Run lint, types and unit tests: what one runs all day
	.ci/side-by-side $(MAKE) --jobs=$(CHECKS_AT_ONCE) --output-sync=target SIDE_BY_SIDE=1 test-unit jest lint-lab lint-python

.PHONY: test-unit
test-unit: $(PYTHON_READY) ## Run the unit tests of the Python code, without the slow ones
	$(BIN)/python -m pytest -n $(CHECKS_AT_ONCE) --dist loadfile --quiet $(NOT_SLOW) $(UNIT_TESTS)

.PHONY: jest
jest: $(NODE_READY) ## Run the unit tests of the lab extension
	jlpm test

.PHONY: test-core
test-core: $(PYTHON_READY) ## Run the tests of the core; every branch must be covered
	COVERAGE_FILE=.coverage.core $(BIN)/python -m pytest tests/core --quiet \
	    --cov=jupyter_agentbox.core --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

#: How many processes the Python tests run in; 0 for the one that pytest is. Tests often wait, so three suit two
#: processors. A fourth saves nothing: each process starts servers, browsers and kernels of its own.
WORKERS ?= 3

#: Where the Python processes of the tests import what lets them start and end faster; see there.
SITE_PACKAGES = $(VENV)/lib/python3.*/site-packages
EVERY_PROCESS := tests/every_process

.PHONY: quick-processes
quick-processes: $(PYTHON_READY)
	@# The module first: a Python that starts meanwhile imports what the other file names.
	@for directory in $(SITE_PACKAGES); do cp $(EVERY_PROCESS)/*.py $(EVERY_PROCESS)/*.pth "$$directory"; done

.PHONY: pytest
pytest: install quick-processes $(IK630_READY) system-packages ## Run the Python tests: unit, integration, browser, packaging
	AGENTBOX_TEST_IPYKERNEL_630=$(CURDIR)/$(VENV_IK630)/bin/python \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --durations=40 --durations-min=5 $(ARGS)

.PHONY: test-versions
test-versions: install $(OLDEST_READY) $(COLLABORATION_READY) $(HUB5_READY) $(ENTERPRISE_GATEWAY_READY) system-packages ## Run the tests of the page in the oldest JupyterLab and Notebook and with jupyter-collaboration, those of gateways with Enterprise Gateway, and those of a Hub with JupyterHub 5
	AGENTBOX_TEST_OLDEST_LAB=$(CURDIR)/$(VENV_OLDEST)/bin/python $(BIN)/python -m pytest -n 0 tests/browser/test_versions.py $(ARGS)
	AGENTBOX_TEST_COLLABORATION=$(CURDIR)/$(VENV_COLLABORATION)/bin/python $(BIN)/python -m pytest -n 0 tests/browser/test_collaboration.py $(ARGS)
	AGENTBOX_TEST_ENTERPRISE_GATEWAY=$(CURDIR)/$(VENV_ENTERPRISE_GATEWAY)/bin/python $(BIN)/python -m pytest -n 0 tests/integration/test_gateway.py $(ARGS)
	PATH="$(CURDIR)/$(VENV_HUB5)/bin:$$PATH" $(VENV_HUB5)/bin/python -m pytest -n 0 tests/hub $(ARGS)

#: What depends on who runs it, one of each kind: limits, processes, files, system calls, sockets, the server's own.
USER_TESTS := tests/sandbox/test_limits.py tests/sandbox/watch/test_cgroups.py tests/sandbox/test_probes.py \
    $(addprefix tests/attacks/test_,fork_bomb.py memory_bomb.py signals.py ptrace.py token_from_proc.py ssh_key.py \
    symlink.py hard_link.py chroot.py setuid.py devices.py tcp.py raw_socket.py abstract_socket.py package.py)

.PHONY: test-user
test-user: install quick-processes system-packages ## Run the tests that depend on the user once more, as an ordinary user
	@[ "$$(id -u)" != 0 ] || .ci/as-ordinary-user $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -p no:cacheprovider --quiet $(USER_TESTS)

.PHONY: attack
attack: install quick-processes system-packages ## Run every attack at every level that this machine reaches, and print what each one got
	AGENTBOX_ATTACK_TABLE=1 $(BIN)/python -m pytest tests/attacks --quiet -rs -n $(WORKERS) --dist loadfile $(ARGS)

#: How long each test of `make fuzz` goes on, in seconds, and with which seed it begins. In `make test` it is 10 seconds.
SECONDS_EACH ?= 1200
SEED ?= $(shell date +%s)

.PHONY: fuzz
fuzz: $(PYTHON_READY) ## Send anything to the REST API, from kernels and from MCP servers, for an hour
	AGENTBOX_FUZZ_SECONDS=$(SECONDS_EACH) AGENTBOX_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest tests/fuzz --quiet -n 0 -s $(ARGS)

.PHONY: system-packages
system-packages:
	@.ci/system-packages chromium:chromium firefox-esr:firefox-esr bubblewrap:bwrap socat:socat ripgrep:rg
	@PATH="$$PATH:/usr/sbin" .ci/system-packages pgbouncer:pgbouncer
	@.ci/system-packages chromium-headless-shell:chromium-headless-shell

.PHONY: docs
docs: $(PYTHON_READY) ## Build the documentation into docs/_build/html
	@# -E reads every page again: a page that did not change may link to a heading that did.
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.PHONY: messages
messages: $(NODE_READY) ## Write what translators translate into dist/jupyter_agentbox.pot
	node .ci/extract-messages.mjs dist/jupyter_agentbox.pot

# --- Compare -----------------------------------------------------------------------------------------------------

.PHONY: bench
bench: $(PYTHON_READY) ## Compare with ipybox, Osprey and Codex: A B A B, tables and bench.json
	@rm -f $(SITE_PACKAGES)/quick_processes.p*  # users have no such thing
	$(BIN)/python -m bench --peers $(VENV_PEER) $(ARGS)

# --- Clean -------------------------------------------------------------------------------------------------------

.PHONY: clean
clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) $(VENV_IK630) $(VENV_PEER) $(VENV_OLDEST) $(VENV_COLLABORATION) $(VENV_HUB5) $(VENV_ENTERPRISE_GATEWAY) node_modules .demo .demo-hub dist docs/_build jupyter_agentbox/labextension labextension/lib \
	    .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache *.tsbuildinfo
	find jupyter_agentbox tests -name __pycache__ -type d -prune -exec rm -rf {} +
