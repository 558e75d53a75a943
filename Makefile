# Shortline's everyday commands. Each is a thin name for a script or a cargo call.
#
#   make demo       what it is about, in 90 seconds after the build, without root
#   make test       all checks and tests, the fuzz targets on their corpus too, and the instructions
#                   of hot paths; what CI runs
#   make test-long  the tests that take long: 2,000 hostile clients, the simulator against
#                   closed forms at loads up to 0.95, W1 in user-mode kernels (one is built),
#                   minutes of fuzzing; PostgreSQL's, psycopg's and go-sql-driver's own tests and
#                   programs with five drivers through the gate, the latter through its pool, too; an
#                   hour of simulated worlds, half of it the gate's; the packages in clean Debians
#   make wheel      build the Python package (docs/python.md)
#   make wheel-test test it on two Pythons; a part of test-long
#   make dist       a release: archive, Debian package, image, chart, SBOM, checksums, in target/dist
#   make install    build, and install into /usr/local (PREFIX, DESTDIR), as root
#   make bench      measure everything into lab-results (as root: namespaces)
#   make docs-test  the operators' pages: their commands, configurations, links and sentences
#   make lint       format, clippy, docs, licences
#   make setup      what the others need on a Debian machine
#   make clean      everything that these made

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-long wheel wheel-test docs-test bench dist install lint setup h2spec pebble helm clean

BINARY = $(or $(CARGO_TARGET_DIR),target)/release/shortline

help:
	@sed -n 's/^#   //p' Makefile

demo:
	scripts/setup rust
	@echo "demo: builds the server and the lab, 5 to 15 minutes on two processors the first time"
	cargo build --release --locked -p shortline -p shortline-lab
	scripts/demo $(BINARY) demo

test: setup h2spec pebble
	scripts/lint --but-clippy
	scripts/test --clippy --no-default-features --features shortline/http3
	scripts/instructions

test-long: setup h2spec pebble helm
	scripts/setup kernel
	scripts/setup packages
	scripts/setup suites
	cargo build --release --locked -p shortline -p shortline-lab
	$(BINARY) lab kernel build || echo "test-long: without a kernel of its own W1 in virtual time is skipped"
	SHORTLINE_HOSTILE_CLIENTS=2000 scripts/test --profile test-long -- --include-ignored
	scripts/otelcol/build
	cargo test --no-default-features --features otel -p shortline --test serve -- spans
	SHORTLINE=$(BINARY) scripts/wheel test test-long
	scripts/fuzz 60
	$(BINARY) lab simulate server --from $$(date +%s)000 --seconds 1800
	$(BINARY) lab simulate gate --from $$(date +%s)000 --seconds 1800
	scripts/suites/postgres
	scripts/suites/psycopg
	scripts/suites/go-mysql
	scripts/suites/drivers
	scripts/dist
	scripts/package-test

wheel:
	scripts/setup rust
	scripts/wheel build

wheel-test:
	scripts/setup rust
	scripts/wheel test

bench: setup
	cargo build --release --locked -p shortline-lab
	scripts/setup dist
	program=$$(scripts/guided) && cp $(BINARY)-lab "$$(dirname "$$program")" && scripts/bench "$$program"

docs-test:
	cargo test --locked --no-default-features --features http3 -p shortline --test docs --test moving -- --nocapture
	cargo test --locked -p shortline-lab --test docs

dist:
	scripts/setup dist
	scripts/dist

install: $(BINARY)
	scripts/install $(BINARY)

$(BINARY):
	cargo build --release --locked -p shortline

lint: setup
	scripts/lint --deny

setup:
	scripts/setup

h2spec:
	scripts/h2spec/build

pebble:
	scripts/pebble/build

helm:
	scripts/helm/build

clean:
	cargo clean
	rm -rf demo lab-results fuzz/target fuzz/artifacts
