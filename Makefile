# Every gate has a name; CONTRIBUTING.md says what each is for. Each installs what it needs with apt-get when it runs as
# root, and says what is missing otherwise.

CARGO ?= cargo
TRIPLE := $(shell rustc -vV | sed -n 's/^host: //p')
RELEASE := target/$(TRIPLE)/release/gofer

.PHONY: help run build check fmt clippy docs deny greps early test test-units test-loom test-integration test-long bench setup vm runsc clean

help:
	@echo "make run        build, boot a sandbox with this gofer; without a runsc, serve a sample directory"
	@echo "make test       everything that belongs to every change, within 10 minutes on 2 CPUs"
	@echo "make test-long  the same at full length: 10 minutes of churn, 1,000 killed clients, 300,000 files in a virtual machine"
	@echo "make check      formatting, lints, documentation, dependencies"
	@echo "make runsc      every generation of runsc that can be reached, into target/runsc"
	@echo "make bench      round trips and listings against bare system calls; start-up and idle memory against runsc's gofer"

run: build
	@integration/sandbox.sh $(RELEASE) || { [ $$? = 3 ] && integration/sample.sh $(RELEASE); }

build:
	$(CARGO) build --release --locked -p gofer

check: fmt clippy docs deny greps early

fmt:
	@rustup component add rustfmt clippy >/dev/null 2>&1 || true
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items

deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked --target $(TRIPLE)
	$(CARGO) deny --locked check bans licenses sources
	@$(CARGO) deny --locked check advisories || \
	  if $(CARGO) deny fetch db >/dev/null 2>&1; then exit 1; \
	  else echo "SKIPPED: cargo deny check advisories: the advisory database cannot be fetched from here"; fi

greps:
	@integration/greps.sh

# Whatever runs before libc must not need it.
early: build
	@integration/early.sh $(RELEASE)

test: setup vm runsc test-units test-loom test-integration
	@echo "make test: all passed"

test-units:
	$(CARGO) test --locked -p gofer-protocol -p gofer-sizing -p gofer

# The model checker replaces std's atomics, so it needs a build of its own; RUSTFLAGS also replaces crt-static.
test-loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --locked --release -p gofer-protocol --test loom

# Tests drive the binary that is shipped: memory budgets mean nothing without optimisation.
test-integration: build
	GOFER_BINARY=$(CURDIR)/$(RELEASE) $(CARGO) test --locked -p gofer-integration

test-long: setup vm runsc build
	GOFER_BINARY=$(CURDIR)/$(RELEASE) GOFER_LONG=1 GOFER_CHURN_SECONDS=600 GOFER_KILLS=1000 \
	  $(CARGO) test --locked -p gofer-integration -- --nocapture

bench: setup runsc build
	GOFER_BINARY=$(CURDIR)/$(RELEASE) $(CARGO) bench --locked -p gofer-benches

# What cannot be installed is said, and the tests that need it say SKIPPED.
setup:
	@integration/setup.sh || echo "SKIPPED: not all that tests use could be installed"

vm:
	@integration/vm/fetch.sh || echo "SKIPPED: no virtual machine"

runsc:
	@integration/runsc.sh || echo "SKIPPED: sandboxes of the generations of runsc named above"

clean:
	$(CARGO) clean
