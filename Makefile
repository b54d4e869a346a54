# Two commands matter: `make demo` and `make test`. Both set up what they need.
CARGO ?= cargo
# One set of features for everything that is built, so that nothing is built twice.
export CARGO_TERM_COLOR ?= auto

.PHONY: demo demo-node bench test check build deb setup clean-cache

build:
	$(CARGO) build --release --bin quartermaster

# A real broker, 200 emulated servers and the provisioner, live; exit code 0 only if all were provisioned.
demo: build
	@QM_NATS_SERVER="$$(tools/get-nats-server)" && export QM_NATS_SERVER && \
	  target/release/quartermaster demo $(DEMO_ARGS)

# Two machines of a mesh on this one: broker, vault, engines and clients, live; exit code 0 only if all of it was seen.
demo-node: build
	@QM_NATS_SERVER="$$(tools/get-nats-server)" && export QM_NATS_SERVER && \
	  target/release/quartermaster demo-node $(DEMO_ARGS)

# Measures on this machine: the parts alone (criterion, a minute or two), then 1,000 servers with everything real, three times.
bench: build
	@$(CARGO) bench --bench codec --bench work -- --warm-up-time 0.3 --measurement-time 1
	@QM_NATS_SERVER="$$(tools/get-nats-server)" && export QM_NATS_SERVER && \
	  target/release/quartermaster bench $(BENCH_ARGS)

# The Debian package, into target/debian.
deb:
	@tools/make-deb

# Everything that can run here. What cannot says so in one line and why; with QM_REQUIRE_ALL=1 it fails instead.
test:
	@QM_NATS_SERVER="$$(tools/get-nats-server)" || QM_NATS_SERVER=; export QM_NATS_SERVER; \
	  $(CARGO) build --quiet --workspace --examples && \
	  $(CARGO) test --workspace --all-targets --no-fail-fast && $(CARGO) test --workspace --doc && \
	  $(CARGO) test --workspace --features quartermaster/otel --test otel

# What a change must pass before it is read: format, lints, documentation, licences and advisories.
check:
	$(CARGO) fmt --all --check
	@if command -v gofmt >/dev/null; then unformatted="$$(gofmt -l tests/choria/lab)" && test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }; fi
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --features quartermaster/otel --lib --test otel -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	$(CARGO) check --quiet --locked --manifest-path proto/fuzz/Cargo.toml --target-dir target/fuzz
	@tools/deny
