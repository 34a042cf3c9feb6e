# The targets that a user and a builder need. Nothing here asks anything; `setup` says what it installs before it does.
# Cargo takes as many jobs as there are cores; `make CARGO_FLAGS=-j1 test` takes fewer.
SHELL := /bin/sh
CARGO ?= cargo
CARGO_FLAGS ?=
NARROWS := ./target/release/narrows
STATIC = ./target/static/$(shell uname -m)-unknown-linux-musl/narrows
PREFIX ?= /usr/local

# A fresh Rust installation is not always on the PATH of the shell that runs make.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help setup build static static-twice image package package-test manifests install check test without-wing fuzz audit demo demo-forwarding bank verify howto pages bench store-check postgres-check server-check soak campaign-check optimise-check iperf3 foreign store-bench fleet-bench mesh-trial fleet-trial connections-bench docs site clean

help: ## what can be made (this list)
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

setup: ## check for git, a C linker, clang and Rust 1.95; on Debian install what is missing, and say so
	@.ci/setup

build: setup ## the program: target/release/narrows
	$(CARGO) build --release --locked $(CARGO_FLAGS) -p narrows

static: ## the static program, stripped: target/static (TARGETS=aarch64-unknown-linux-musl: for another CPU)
	@packaging/static $(TARGETS)

static-twice: static ## the static program once more, in another folder from a clone of the last commit: the same bytes (15 minutes)
	@packaging/twice

image: static ## a container image of the static program, for this CPU (podman; packaging/container says how for others)
	podman build -t narrows -f packaging/container/Containerfile .

package: ## .deb, .rpm, .tar.gz and their checksums: target/package (TARGETS as for static)
	@packaging/package $(TARGETS)

package-test: ## packages installed, run, upgraded, removed and purged in a clean Debian (as root; minutes)
	@packaging/test

MANIFESTS = --locked $(CARGO_FLAGS) --manifest-path packaging/kubernetes/check/Cargo.toml --target-dir target/manifests
manifests: setup ## packaging/kubernetes against the schema of Kubernetes' API, and what its objects name of each other (minutes at first)
	$(CARGO) test $(MANIFESTS)
	$(CARGO) run -q $(MANIFESTS) -- packaging/kubernetes/*.yaml

install: static ## the static program, manual, completions and unit below DESTDIR and PREFIX (/usr/local)
	@packaging/stage $(STATIC) "$(DESTDIR)" "$(PREFIX)"

check: ## format, lints and the tests of the pure crates, for a small change (a minute)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked $(CARGO_FLAGS) -- -D warnings
	$(CARGO) test --locked -q $(CARGO_FLAGS) -p narrows-model -p narrows-stats -p narrows-wire -p narrows-search -p narrows-diagnose -p narrows-views -p narrows-render

test: setup ## format, lints, licences, all tests, fresh docs, house rules
	@.ci/gate

without-wing: setup ## the program without the benchmark of a router: builds without a warning (a minute)
	$(CARGO) clippy -q --locked -p narrows --no-default-features -- -D warnings

fuzz: setup ## every parser with random input, FUZZ_SECONDS=10 for each; guided by coverage where cargo-fuzz is installed
	@.ci/fuzz

audit: ## known vulnerabilities of the dependencies (cargo-deny and its database)
	@.ci/audit

demo: .lab build ## the main job, in an emulated network on this machine (under two minutes after the build)
	$(NARROWS) lab demo

demo-forwarding: .cables build ## a small RFC 2544 benchmark of a router in an emulated network; writes forwarding.html (about a minute after the build)
	$(NARROWS) lab demo-forwarding

bank: .lab build ## every fault and every healthy scenario, with the confusion matrix (long)
	$(NARROWS) lab scenarios

verify: .lab build ## emulator, packet ledger and search against what the lab knows for certain (six minutes)
	$(NARROWS) lab verify

howto: .lab build ## every command of the tutorial, the how-tos and the pages from other tools, in emulated networks (about ten minutes)
	@.ci/howto $(NARROWS)

pages: .lab build ## every page that narrows writes, looked at by Chromium and axe: widths, light, dark, print, large grids (as root; eleven minutes)
	@.ci/pages $(NARROWS)

bench: build ## TCP, UDP and frames: rates, loss, CPU, pacing, against their peers (as root; 50 minutes)
	$(CARGO) run --release --locked $(CARGO_FLAGS) -p narrows-bench -- --narrows $(NARROWS)

store-check: setup ## the store: twenty killed writers; change points of 1,000 simulated series (minutes)
	NARROWS_KILLS=20 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows-store --test killed -- --nocapture
	NARROWS_SERIES=1000 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows-stats change_points -- --nocapture

postgres-check: setup ## the store on PostgreSQL, where it is installed: the answers of SQLite, twenty killed writers, a server that stops (ten minutes)
	NARROWS_KILLS=20 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows-store --features postgres -- --nocapture
	$(CARGO) test --locked $(CARGO_FLAGS) -p narrows --features postgres --test postgres -- --nocapture

server-check: setup ## the server: a minute of strangers' worst; 200 kills of client, server and helpers during --try (45 minutes)
	NARROWS_STORM_S=60 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test storm -- --nocapture
	NARROWS_KILLS=200 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test killed_try killed_at_any -- --nocapture
	NARROWS_KILLS=200 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test cli killed_at_any -- --nocapture

SOAK_H ?= 2
soak: setup ## all services of a server in use for SOAK_H=2 hours; its size and speed are judged by their trends (as root: the clock jumps)
	NARROWS_SOAK_S=$$(echo "$(SOAK_H) * 3600 / 1" | bc) NARROWS_SOAK_CLOCK=1 $(CARGO) test --release --locked $(CARGO_FLAGS) -p narrows --test storm a_server_in_use -- --nocapture

campaign-check: setup ## a campaign of five factors in the lab, once whole and once killed three times, and single measurements (20 minutes)
	NARROWS_CAMPAIGN=1 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test killed_campaign -- --nocapture

optimise-check: .lab setup ## narrows optimise on a path with three limits, against the same path without them (15 minutes)
	NARROWS_OPTIMISE=1 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test optimise -- --nocapture --test-threads=1

iperf3: setup ## 105 combinations of options against the installed iperf3, in both roles; 32 clients at once (two minutes)
	@.ci/iperf3

connections-bench: .lab build ## CPU time of narrows connections with 21,000 and 50,000 sockets (as root; two minutes)
	$(CARGO) run --release --locked $(CARGO_FLAGS) -p narrows-runner --example connections_cost -- $(NARROWS)

fleet-bench: setup ## a day of a fleet of 5,000 hosts in simulated time: decisions, memory, store (minutes; 500 MB below target/)
	rm -f target/fleet-simulated.db*
	$(CARGO) run --release --locked $(CARGO_FLAGS) -p narrows-store --example fleet -- 5000 40 1

mesh-trial: setup ## 267 drawn meshes of 40 hosts, 60 with changed settings, and 20 over real sshds that are killed (as root; five hours)
	$(CARGO) build --release --locked $(CARGO_FLAGS) -p narrows
	.ci/mesh_trial.py $(NARROWS)
	.ci/mesh_trial.py $(NARROWS) --settings --cases 60
	.ci/mesh_kills.py $(NARROWS)

fleet-trial: setup ## a fleet of real processes in namespaces: faults, quiet days, chaos; embedded, then PostgreSQL and NATS (as root; two hours)
	$(CARGO) build --release --locked $(CARGO_FLAGS) --features nats,postgres -p narrows
	for engine in embedded outgrown; do for what in faults quiet chaos; do .ci/fleet_trial.py $(NARROWS) $$what --engine $$engine || exit 1; done; done

foreign: build ## loads against servers of other implementations, which NDT7=PROGRAM and QUIC="PROGRAM ..." name (as root; five minutes)
	@.ci/foreign $(NARROWS) $(if $(NDT7),--ndt7 $(NDT7)) $(foreach it,$(QUIC),--quic $(it))

store-bench: setup ## the store with 100,000 runs: lists, trend, size (minutes; 600 MB below target/)
	XDG_STATE_HOME=$(CURDIR)/target/store-bench $(CARGO) run --release --locked $(CARGO_FLAGS) -p narrows-runner --example store_load

docs: setup ## write the generated pages of docs/ anew
	UPDATE_DOCS=1 $(CARGO) test --locked $(CARGO_FLAGS) -p narrows --test docs

site: setup ## the documentation as a site, with search: target/book/index.html
	@command -v mdbook >/dev/null || { echo "site: mdbook is missing; install it with \`cargo install mdbook\`" >&2; exit 1; }
	mdbook build

clean: ## remove what was built
	$(CARGO) clean

.PHONY: .lab .cables
.lab:
	@.ci/lab-ready
.cables:
	@.ci/lab-ready cables
