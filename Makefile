# The commands of the project. Each works on a clean clone and needs no terminal.

.PHONY: help build demo test kills hostile histories chaos bench fmt fuzz doc ui screenshots guide wheel docs dist dist-check container package-check check-systems

# Properties use the same cases every time, so that a result only depends on the change; make fuzz searches for
# new cases.
export PROPTEST_RNG_SEED ?= 9097

# Most tests wait for other programs, or for time that passes: there are more at once than processors. Those that need the
# processors for themselves run alone whatever this says.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))

# Tests send signals. Background scripts and nohup(1) let their children ignore some of them.
SIGNALS = env --default-signal=HUP,INT,QUIT

# File in which tests record that they were skipped.
SKIPPED = $${CARGO_TARGET_DIR:-target}/tmp/skipped.txt

HEADING = @printf '\n== %s\n'

help:
	@echo "make build   build the release binary, target/release/linerate"
	@echo "make ui      check, test and build the charts of reports (ui/)"
	@echo "make screenshots  pictures of report pages and texts of the terminal, target/screenshots; as root also of plans in the lab"
	@echo "make demo    measure this machine over loopback, archive the run, write a report"
	@echo "make test    all checks and tests that a change must pass"
	@echo "make guide   as root: run the commands of README and guide, and write what they print into the pages"
	@echo "make kills   as root: SIGKILL to a plan's coordinator, agents and lab TIMES times at random moments, starting with SEED"
	@echo "make hostile SESSIONS hostile peers against server, client and agent, random from SEED on"
	@echo "make histories  HISTORIES random histories of a fleet with faults, from SEED on"
	@echo "make chaos   CHAOS random runs of a fleet with real servers that are killed and stopped, from SEED on; best as root"
	@echo "make wheel   build the Python package with the program of make dist or make build, target/wheels"
	@echo "make bench   compare with the installed peers"
	@echo "make check-systems  check that the client side compiles for macOS and Windows"
	@echo "make fmt     format the code"
	@echo "make fuzz    search for new failures: random property tests, arbitrary bytes into every decoder"
	@echo "make docs    README, guide, concepts and reference as web pages with search, target/book"
	@echo "make dist    static programs, package, checksums and their signature, dist/"
	@echo "make dist-check  check what make dist made, and that a second build is the same"
	@echo "make package-check  as root: install, try and purge the Debian package in a fresh root, and compile there"
	@echo "make container   the container image of the server, dist/; as root also a test run"
	@echo "make doc     the documentation of all crates, target/doc"

build:
	cargo build --release

# The program embeds this output, so it must precede every build that should write reports with charts.
ui:
	@scripts/ui.sh

# `make test` opens the pages of the fixtures in the same browser, and checks what can be checked without looking.
screenshots:
	@scripts/screenshots.sh

demo:
	@scripts/demo.sh

test:
	$(HEADING) 'requirements of the tests'
	@scripts/test-deps.sh
	$(HEADING) 'front end'
	@scripts/ui.sh
	$(HEADING) 'format'
	@cargo fmt --all --check
	$(HEADING) 'lints'
	@cargo clippy --workspace --all-targets -- -D warnings
	$(HEADING) 'house rules'
	@cargo xtask tidy
	@cargo xtask walk --check
	@cargo xtask gen --check
	$(HEADING) 'the small build, what is installed, and the files of releases'
	@scripts/core-check.sh
	@scripts/test-need.sh
	@scripts/test-dist.sh
	@scripts/test-dist-sums.sh
	$(HEADING) 'tests'
	@rm -f $(SKIPPED)
	@$(SIGNALS) scripts/cargo-test.sh --workspace --no-fail-fast
	$(HEADING) 'tests that need root, network namespaces or other programs'
	@cargo xtask skips
	@if [ "$$(id -u)" -eq 0 ]; then $(SIGNALS) scripts/cargo-test.sh --workspace --tests --no-fail-fast -- --ignored; \
	else echo 'not run: start make test as root to run them'; fi
	$(HEADING) 'tests that were skipped: the machine was busy, or a program is missing'
	@if [ -s $(SKIPPED) ]; then cat $(SKIPPED); else echo none; fi

# `make test` runs the same commands, shorter ones where the page measures for long, and compares.
guide: ui
	@LINERATE_GUIDE=write cargo test -p linerate --test root guide:: -- --ignored --test-threads 1

# `make test` runs a few of these. TIMES=1 SEED=number repeats one, with the number from the failure message.
TIMES ?= 100
SEED ?= 1

kills:
	@LINERATE_KILLS=$(TIMES) LINERATE_KILLS_SEED=$(SEED) \
	cargo test -p linerate --test root whoever_is_killed -- --ignored --nocapture

# `make test` runs a sample of these; SESSIONS=1 SEED=number repeats one.
SESSIONS ?= 10000

hostile:
	@LINERATE_HOSTILE=$(SESSIONS) LINERATE_HOSTILE_SEED=$(SEED) \
	cargo test -p linerate --test it hostile_sessions -- --nocapture

# `make test` runs a sample of these; HISTORIES=1 SEED=number repeats one.
HISTORIES ?= 1000

histories:
	@LINERATE_HISTORIES=$(HISTORIES) LINERATE_HISTORIES_SEED=$(SEED) \
	cargo test --release -p linerate-fleet --test it histories -- --nocapture

# `make test` runs two of these. What happens follows from the seed, but when exactly does not.
CHAOS ?= 100

chaos:
	@LINERATE_CHAOS=$(CHAOS) LINERATE_CHAOS_SEED=$(SEED) \
	cargo test --release -p linerate-fleet --test chaos

# PROGRAM=file names another program. `make test` checks the package, installs it and tests it.
wheel:
	@scripts/python-package.sh wheel $(PROGRAM)

bench: build
	@scripts/need.sh iperf3:iperf3 nuttcp:nuttcp qperf:qperf sockperf:sockperf ethtool:ethtool
	@cargo xtask bench

# Not a part of `make test`: it compiles the standard library for each system first.
check-systems:
	@scripts/check-systems.sh

fmt:
	@cargo fmt --all

fuzz:
	@scripts/fuzz.sh

# What is handed out: it takes long, so `make test` only has a sample of it. LINERATE_SIGNING_KEY names the SSH key that
# signs. ARCHITECTURES=x86_64 and BUILDS=core select fewer programs.
dist:
	@scripts/dist.sh

dist-check:
	@scripts/dist-check.sh

container:
	@scripts/container.sh

package-check:
	@scripts/package-check.sh

doc:
	@RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# `make test` runs the commands in the pages, and `cargo xtask tidy` checks their links.
docs:
	@scripts/docs.sh
