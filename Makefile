# Every command of this repository. A fresh machine needs python3 (>= 3.11), cargo, a C linker and
# make; the first target you call sets up the rest: a virtual environment and a build directory for
# this clone, both under ~/.cache/iolab (or, where that cannot be written, .venv/ and target/ in the
# clone). Nothing here needs root; some tests use it if there.
#
# Clones do not share a build directory: cargo knows a crate of a workspace by its path inside the
# workspace and by the age of its files, so that one clone would run what another one built.
#
#   make demo      a complete study, its verdict and reports under demo-out/
#   make test      all tests; ends with what passed, failed and was skipped
#   make help      the other targets

PYTHON ?= python3
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/iolab
CACHE_IS_WRITABLE := $(shell mkdir -p "$(CACHE)" 2>/dev/null && test -w "$(CACHE)" && echo yes)
CLONE := $(shell printf '%s' "$(CURDIR)" | cksum | cut -d ' ' -f 1)
ifeq ($(CACHE_IS_WRITABLE),yes)
export IOLAB_VENV ?= $(CACHE)/venv/$(CLONE)
export CARGO_TARGET_DIR ?= $(CACHE)/target/$(CLONE)
else
export IOLAB_VENV ?= $(CURDIR)/.venv
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_HOME ?= $(CURDIR)/target/cargo-home
endif
export PYTHON
export PATH := $(IOLAB_VENV)/bin:$(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

# The extension module has no Rust tests of its own and would need libpython to link them.
RUST_TESTED := --workspace --exclude iolab-py
PYTEST := $(IOLAB_VENV)/bin/python -m pytest
TEST_PARTS := setup test-rust test-python tidy docs-check
LINT_PARTS := setup-lint fmt-check lint-rust lint-python types

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz bench bench-aa bench-demo bench-verdicts lint fmt fmt-check docs docs-check tidy golden bless types examples \
        ci clean setup setup-lint test-rust test-python lint-rust lint-python audit lock soak

help:
	@awk '/^[a-z][a-z-]*:.*##/ { name = $$1; sub(/:.*/, "", name); sub(/.*## /, ""); \
	      printf "  make %-12s %s\n", name, $$0 }' Makefile

demo: setup ## run the demo study; prints the verdict and where the reports lie
	@tools/demo.sh

test: ## all tests, the rules of tidy, and the documents' checks
	@tools/parts.sh $(TEST_PARTS)

bench: setup ## ours against the peers; prints tables, writes target/bench.json; BASE=AGENT: beside another build, too
	@python benches/run.py
	@[ "$$(id -u)" != 0 ] || python benches/peers.py
	@if command -v iozone && command -v bonnie++ && [ "$$(id -u)" = 0 ]; then \
		python benches/dialects.py && python benches/small.py; \
	else echo "benches/dialects.py, small.py: left out, they need root, iozone and bonnie++"; fi
	@if [ -n "$(BASE)" ]; then python benches/builds.py --base "$(BASE)"; \
	else echo "benches/builds.py: left out, BASE=AGENT names the agent of another build"; fi
	@if [ "$$(id -u)" = 0 ]; then python benches/filebench.py; \
	else echo "benches/filebench.py: left out, it needs root"; fi
	@python benches/ycsb.py
	@python benches/lsm.py
	@python benches/check_bar.py --runs 5
	@python benches/simulator.py
	@python benches/simulated_files.py
	@python benches/spread.py
	@python benches/traces.py
	@python benches/plots.py
	@python benches/capture.py
	@if command -v strace && [ "$$(id -u)" = 0 ]; then python benches/followed.py; \
	else echo "benches/followed.py: left out, it needs root and strace"; fi
	@python benches/verdicts.py
	@python benches/analysis.py
	@python benches/pages.py
	@python benches/startup.py
	@python benches/beside_loop.py

bench-demo: setup ## how often the demo decides beside a busy core (root, 25 minutes)
	@python benches/demo_bar.py

bench-aa: setup ## do equal levels differ, is a planted slow-down found? (root, MINUTES=60); VALIDITY=1: do slices agree with trials? (MINUTES=25)
	@if [ -n "$(VALIDITY)" ]; then python benches/validity.py --minutes $(or $(MINUTES),25) --keep; \
	else python benches/slices_bar.py --minutes $(or $(MINUTES),60); fi

bench-verdicts: setup ## how often verdicts are wrong, by simulated studies with known truth
	@python benches/verdicts.py

soak: setup ## long bars: damaged copies, kills, loop devices coming and going (SOAK_SEED)
	@python tools/soak.py damaged --copies 200 --seed "$${SOAK_SEED:-1}"
	@python tools/soak.py kills --kills 100 --seed "$${SOAK_SEED:-1}"
	@IOLAB_CHECKS=1000 $(PYTEST) -q tests/stats/test_requirement_word.py
	@python benches/check_bar.py --runs 20
	@IOLAB_CRASHES=10000 IOLAB_TWIN_STEPS=1000000 cargo test -q --release -p iolab-files --lib \
		--test ext_crash --test ufs_crash --test vxfs_crash --test qfs_crash --test zfs_crash
	@[ "$$(id -u)" != 0 ] || python -m tests.e2e.test_trace_record 30 "$${SOAK_SEED:-1}"
	@tools/churn.sh 3 make --no-print-directory test

fuzz: setup ## fuzz the command lines and importers, FUZZ_SECONDS (60) each; prints the seed
	@python tools/fuzz.py --seconds "$${FUZZ_SECONDS:-60}"

lint: ## formats, clippy, ruff, pyright, stubtest, shellcheck, licences and sources of crates
	@tools/parts.sh $(LINT_PARTS)

audit: ## what cargo-deny says, advisories included (needs cargo-deny and a network)
	cargo-deny --all-features check

lock: ## lock the versions that are installed from PyPI (needs pip-compile)
	@$(PYTHON) tools/lock.py

fmt: setup-lint ## format everything
	cargo fmt --all
	ruff format .

fmt-check: setup-lint
	cargo fmt --all --check
	ruff format --check .

types: setup-lint ## pyright strict on the package, stubtest on the extension
	pyright --project pyproject.toml --pythonpath "$(IOLAB_VENV)/bin/python"
	python -m mypy.stubtest --concise iolab._core

docs: setup ## write what is generated (names of knobs and engines, reference pages), check links
	@python tools/gen_docs.py --names
	@tools/setup.sh test
	@python tools/notebooks.py
	@python tools/gen_docs.py

docs-check: setup ## fail if a generated page has drifted or a link is broken
	@python tools/gen_docs.py --check

tidy: setup ## the rules of size, shape and place (see tools/tidy.py)
	@python tools/tidy.py

golden: setup ## compare with the golden files
	cargo test $(RUST_TESTED) --quiet golden
	$(PYTEST) -q -k golden

bless: setup ## rewrite the golden files; review the difference
	IOLAB_BLESS=1 cargo test $(RUST_TESTED) --quiet golden
	IOLAB_BLESS=1 $(PYTEST) -q -k golden

examples: setup ## check every study under examples/ without running its trials
	@tools/examples.sh

ci: ## what the continuous integration runs
	@.ci/run

clean: ## remove what this clone built and installed
	rm -rf build dist target demo-out .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -rf python/iolab.egg-info "$(IOLAB_VENV)" "$(IOLAB_VENV).lock" "$(CARGO_TARGET_DIR)"

# --- set-up and parts, called by the targets above --------------------------------------------

setup:
	@tools/setup.sh test

setup-lint:
	@tools/setup.sh test,lint

lint-rust:
	cargo clippy --workspace --all-targets --quiet -- -D warnings

lint-python: setup-lint
	ruff check .
	@tools/optional.sh shellcheck tools/*.sh .ci/run
	@python tools/crates.py
	@python tools/lock.py --check

test-rust:
	cargo test $(RUST_TESTED) --quiet --no-fail-fast
	@tools/on_file_systems.sh cargo test -p iolab-real --test conformance --quiet -- --nocapture

test-python: setup
	@tools/python_tests.sh $(IOLAB_VENV)/bin/python $(PYTEST_ARGS)
