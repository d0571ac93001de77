# Everything a newcomer needs: `make demo` and `make test`.  Both set up what they need first.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
BENCH_ARGS ?=
NIGHTLY_ARGS ?=
COVERAGE_TESTS ?= tests/unit tests/functional
# Lines with branches that the tests must run, in percent: all tests, not some.
COVERAGE_LEAST ?= $(if $(filter file,$(origin COVERAGE_TESTS)),90,0)
export COVERAGE_FOLDER := $(CURDIR)/build/coverage
# All workers must name the tests alike, sets in the names included, hence the one hash seed.
# Four workers keep two cores busy while some wait; a file's tests stay together, and so does what
# they started.
# tests/conftest.py says which files come first.
PYTEST_WORKERS ?= 4
DISTRIBUTED = -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder
TEST_MARKS ?= not nova and not faults and not packages
# What the inner loop leaves out: tests on random fleets, and those that take more than half a second.
CHECK_MARKS ?= not hypothesis and not slow and not functional
# Quick, and each of another kind: a broker, schedulers and a database that are killed.
FAULTS_SAMPLE ?= SIGKILL
# Found within seconds, each by another check.
PLANTS_SAMPLE ?= "comparison dropped" "never closed" "repeats are decided anew" "unknown ends are good" \
	"locks in any order"

RUN := $(VENV)/bin
DECLARED := setup.cfg pyproject.toml constraints.txt .ci/setup-venv

.PHONY: help
help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/ready-run  ## See it work: 8 hosts, about 20 servers, in one process
	@$(RUN)/python -m conductor_stub.demo

# KEEP=1 leaves it running, to look at its status page.
.PHONY: demo-nova
demo-nova: $(VENV)/ready-test servers  ## See it work in a whole Nova without hypervisors: three minutes
	@$(RUN)/python -m tests.nova.cloud $(if $(KEEP),--keep)

.PHONY: test
test: $(VENV)/ready-test servers  ## Run all tests, on real servers; those with a Nova apart
	@PYTHONHASHSEED=0 $(RUN)/python -m pytest $(DISTRIBUTED) -m "$(TEST_MARKS)" $(PYTEST_ARGS)

.PHONY: check
# Nothing waits there.
check: PYTEST_WORKERS = 2
check: $(VENV)/ready-check  ## Check style and types, run the quick unit tests: the inner loop
	@$(RUN)/ruff check --quiet .
	@$(RUN)/ruff format --quiet --check .
	@$(RUN)/mypy
	@PYTHONHASHSEED=0 $(RUN)/python -m pytest -q $(DISTRIBUTED) -m "$(CHECK_MARKS)" tests/unit $(PYTEST_ARGS)

# Each takes at most an hour, goes on where it was stopped, and keeps what it found in docs/evidence.
.PHONY: nightly
nightly: $(VENV)/ready-fuzz servers  ## Run all that takes long: faults, soak, race, fuzz, test-nova, test-shadow, test-nova-functional, test-versions
	@$(RUN)/python -m tests.nightly $(NIGHTLY_ARGS)

.PHONY: faults
faults: $(VENV)/ready-test servers  ## Break what can break under load; print promises and results
	@$(RUN)/python -m tests.nightly faults $(NIGHTLY_ARGS)

.PHONY: soak
soak: $(VENV)/ready-test servers  ## Work under churn; fail if anything grows
	@$(RUN)/python -m tests.nightly soak $(NIGHTLY_ARGS)

.PHONY: race
race: $(VENV)/ready-test servers  ## Let schedulers race for the last MiB while some are killed
	@$(RUN)/python -m tests.nightly race $(NIGHTLY_ARGS)

.PHONY: simulate
simulate: $(VENV)/ready-test  ## Simulate claims: ten million switch points, and every planted fault
	@$(RUN)/python -m tests.simulation --points 10000000 --seconds 900 --plants

.PHONY: fuzz
fuzz: $(VENV)/ready-fuzz servers  ## Try out a million inputs that go wrong; print what became of them
	@$(RUN)/python -m tests.nightly fuzz $(NIGHTLY_ARGS)

.PHONY: test-nova
test-nova: $(VENV)/ready-test servers  ## Run the tests with a real Nova, which is installed first
	@$(RUN)/python -m tests.nightly nova $(NIGHTLY_ARGS)

.PHONY: test-shadow
test-shadow: $(VENV)/ready-test servers  ## Compare a shadow with Nova's scheduler on a thousand requests
	@$(RUN)/python -m tests.nightly shadow $(NIGHTLY_ARGS)

# MODULES: some of those in tests/nova_functional/modules.txt.  RELEASE: 34, 33 or 32, 34 without it; the
# page has the results of 34.  Goes on where it was stopped.
.PHONY: test-nova-functional
test-nova-functional: $(VENV)/ready-test  ## Run Nova's functional tests with its scheduler and with ours
	@$(RUN)/python -m tests.nova_functional $(or $(MODULES),$(if $(RELEASE),,--page)) $(RELEASE:%=--release %)

# A short sample of each; those of race and fuzz are among the tests.
.PHONY: sample
sample: sample-faults sample-soak sample-nova sample-simulation  ## Run a short sample of faults, soak, test-nova and simulate

# With both processors for itself.
.PHONY: sample-nova-functional
sample-nova-functional: $(VENV)/ready-test  ## Run a short sample of Nova's functional tests
	@$(RUN)/python -m tests.nova_functional --sample $(RELEASE:%=--release %)

.PHONY: sample-faults
sample-faults: $(VENV)/ready-test
	@PYTHONHASHSEED=0 $(RUN)/python -m pytest -q -p no:randomly -m faults tests/faults -k "$(FAULTS_SAMPLE)"

.PHONY: sample-soak
sample-soak: $(VENV)/ready-test
	@PYTHONHASHSEED=0 $(RUN)/python -m tests.soak --hosts 60 --servers 300 --largest 50 \
		--sample-requests 40 --minutes 0 --decisions 15000

.PHONY: sample-simulation
sample-simulation: $(VENV)/ready-test
	@$(RUN)/python -m tests.simulation --points 500000 --jobs 1 --plants $(PLANTS_SAMPLE)

.PHONY: sample-nova
sample-nova: $(VENV)/ready-test
	@PYTHONHASHSEED=0 $(RUN)/python -m pytest -q -m nova tests/nova/test_messages.py tests/nova/test_placements.py

.PHONY: coverage
coverage: $(VENV)/ready-coverage servers  ## Tell what the tests run, with branches (COVERAGE_TESTS: which tests)
	@rm -rf $(COVERAGE_FOLDER) && mkdir -p $(COVERAGE_FOLDER)
	@status=0; COVERAGE_RCFILE=$(CURDIR)/.coveragerc PYTHONHASHSEED=0 $(RUN)/coverage run -m pytest \
		-q $(DISTRIBUTED) -m "$(TEST_MARKS)" --timeout 600 $(COVERAGE_TESTS) $(PYTEST_ARGS) || status=$$?; \
		$(RUN)/coverage combine -q && $(RUN)/coverage report --fail-under=$(COVERAGE_LEAST) && exit $$status

.PHONY: test-versions
test-versions: $(VENV)/ready-test servers  ## Test with the lowest and the highest versions of libraries allowed
	@PYTHON="$(PYTHON)" $(RUN)/python -m tests.nightly versions $(NIGHTLY_ARGS)

.PHONY: nova-venv
nova-venv: $(VENV)/ready-test  ## Install Nova into .venv-nova (or $$NOVA_VENV) for the tests with a real one
	@$(RUN)/python -m tests.servers.venvs nova

.PHONY: nova-functional-venv
nova-functional-venv: $(VENV)/ready-test
	@$(RUN)/python -m tests.servers.venvs nova-functional

.PHONY: placement-venv
placement-venv: $(VENV)/ready-test  ## Install Placement into .venv-placement (or $$PLACEMENT_VENV) for the tests
	@$(RUN)/python -m tests.servers.venvs placement

.PHONY: venv
venv: $(VENV)/ready-check  ## Install the project and everything for developing it into .venv
	@echo "Ready: $(RUN)/python"

# TRACE is the folder of the packed Azure trace; TRACE_ARGS: --from-day, --days.
.PHONY: trace
trace: $(VENV)/ready-run  ## Replay a month of a public cloud under three configurations, write docs/evidence/trace.md
	$(RUN)/python -m benchmarks.trace $(TRACE) $(TRACE_ARGS)

.PHONY: bench
bench: $(VENV)/ready-test servers  ## Measure (BENCH_ARGS: workloads), write docs/evidence/benchmarks.md anew
	$(RUN)/python -m benchmarks --keep benchmarks/results/results.json $(BENCH_ARGS)
	$(RUN)/python -m benchmarks --keep benchmarks/results/results.json --page

.PHONY: lint
lint: lint-types lint-style lint-rules  ## Check style, types, weak spots, the house rules, the sample configuration

.PHONY: lint-types
lint-types: $(VENV)/ready-check
	$(RUN)/mypy

.PHONY: lint-style
lint-style: $(VENV)/ready-check
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/bandit --quiet --configfile pyproject.toml --recursive scheduler conductor_stub

.PHONY: lint-rules
lint-rules: $(VENV)/ready-check
	$(RUN)/python -m pytest -q tests/house

.PHONY: docs
docs: $(VENV)/ready-check  ## Write the documentation as HTML; a broken reference is an error
	$(RUN)/python -m sphinx -q -W -b html docs docs/_build/html

.PHONY: audit
audit: $(VENV)/ready-check  ## Look for known weaknesses of the exact versions in constraints.txt
	@$(RUN)/python -m pip_audit --requirement constraints.txt --no-deps --disable-pip --vulnerability-service osv \
		--timeout 10 --progress-spinner off

.PHONY: sample-config
sample-config: $(VENV)/ready-check  ## Write what is made from the options anew: sample, pages
	$(RUN)/oslo-config-generator --config-file etc/nova/nova-config-generator.conf
	$(RUN)/python -m manual

.PHONY: manual
manual: $(VENV)/ready-check  ## Write manual pages, completion and the page of options anew
	$(RUN)/python -m manual

.PHONY: servers
servers:  ## Install the servers for the tests if root and on Debian; else name them
	@PYTHON="$(PYTHON)" .ci/install-servers

.PHONY: dist
dist: $(VENV)/ready-test  ## Build wheel and sdist into dist/ (docs/release.md)
	$(RUN)/python -m build --no-isolation

.PHONY: clean
clean:  ## Remove what the commands above have made
	rm -rf $(VENV) .venv-lowest .venv-highest .venv-nova* .venv-placement* .tox build dist *.egg-info docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What is installed is remembered by a file, so that nothing is done while setup.cfg and the
# constraints stay as they are.
$(VENV)/ready-run: $(DECLARED)
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV)
	@touch $@

$(VENV)/ready-test: $(DECLARED)
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV) test
	@touch $@ $(VENV)/ready-run

$(VENV)/ready-fuzz: $(DECLARED)
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV) test,fuzz
	@touch $@ $(VENV)/ready-run $(VENV)/ready-test

$(VENV)/ready-coverage: $(DECLARED)
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV) test,coverage
	@touch $@ $(VENV)/ready-run $(VENV)/ready-test

$(VENV)/ready-check: $(DECLARED)
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV) test,style,typing,docs
	@touch $@ $(VENV)/ready-run $(VENV)/ready-test
