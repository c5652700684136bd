# One door for every verb; CI and the README use only these. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CACHEWARM_CACHE ?= $(HOME)/.cache/cachewarm
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_MAXSIZE ?= 5G
K ?=
ARGS ?=
# Every verb of one call of make appends its times here; tools/run_tests.py prints them.
export CACHEWARM_STAGES := $(or $(CACHEWARM_STAGES),$(CURDIR)/build/stages/$(shell date +%s.%N))

.PHONY: help
help: ## list the verbs
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: ## install every package and tool that build and tests need (Debian 12, as root)
	@tools/timed "set-up" tools/setup/all

.PHONY: build
build: setup ## build the programs as they ship, into build/release
	@tools/stage build-release

.PHONY: test
test: setup ## run unit (ASan, UBSan), contract, charts, the demo, and e2e on real clusters
	@tools/run_tests.py

.PHONY: unit
unit: setup ## run the tests that need no cluster
	@tools/run_tests.py unit

.PHONY: check
check: setup ## format, rules of the house, clang-tidy of the folders that changed
	@tools/stage check

.PHONY: tidy
tidy: setup ## clang-tidy of every folder
	@tools/stage tidy

.PHONY: format
format: ## format every source in place
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format -i

.PHONY: sanitize
sanitize: setup ## threads under TSan, built by clang
	@tools/stage sanitize

.PHONY: bench
bench: setup ## bundles against zip, tar, Go and containerd; ARGS=--small: a minute, ARGS=--help
	@tools/stage bench $(ARGS)

.PHONY: bench-disk
bench-disk: setup ## fetches on a throttled and on a filled disk, and in little memory; ARGS=--help
	@tools/stage bench-disk $(ARGS)

.PHONY: bench-engines
bench-engines: build ## first calls of real engines with copy, mega-cache, Redis, fal, b10 and cachewarm; ARGS=--help
	@tools/stage bench-engines $(ARGS)

.PHONY: bench-watch
bench-watch: setup ## processor time of the agent's watch while pods start; ARGS="10000 10 60"
	@tools/stage bench-watch $(ARGS)

.PHONY: bench-webhook
bench-webhook: setup ## how long the webhook for older servers takes to answer
	@tools/stage bench-webhook

.PHONY: bench-world
bench-world: setup ## memory and rounds of the operator over a made-up cluster; ARGS="5000 10000 20"
	@tools/stage bench-world $(ARGS)

.PHONY: bench-scale
bench-scale: images ## the operator at 5,000 nodes, 20 warmups, 10,000 pods; ARGS=--help
	@tools/stage bench-scale $(ARGS)

.PHONY: gpu-check
gpu-check: build ## on a machine with an NVIDIA GPU: probe and warm starts; exit code 2 without a GPU
	@tools/stage gpu-check $(ARGS)

.PHONY: interop
interop: setup ## bundles against the real skopeo, oras, crane, containerd and cosign
	@tools/stage interop

.PHONY: fuzz
fuzz: setup ## every parser of untrusted input under libFuzzer; FUZZ_SECONDS=60 of processor time each, K=manifest one
	@K=$(K) tools/stage fuzz

.PHONY: golden
golden: ## rewrite the golden files from what the code says now; read the diff
	@UPDATE_GOLDEN=1 tools/run_tests.py unit

.PHONY: mutate
mutate: setup ## plant faults, list those that no test notices; ROOM=operator/plan, FILE=, N=20, SEED=1
	@tools/mutate/mutate.py $(addprefix --room ,$(ROOM)) $(addprefix --file ,$(FILE)) \
	  --count $(or $(N),20) --seed $(or $(SEED),1)

.PHONY: images
images: build ## the container images of operator and agent, built without docker
	@tools/stage images

.PHONY: manifests
manifests: ## render manifests/ from the chart, and its rules and dashboard
	@tools/render-manifests

.PHONY: cluster-up
cluster-up: setup ## start the test cluster: a real Kubernetes 1.36 with three real nodes
	@tests/cluster/cluster up

.PHONY: cluster-down
cluster-down: ## stop the test cluster and leave nothing behind
	@tests/cluster/cluster down

.PHONY: e2e
e2e: images ## run tests/e2e, slow ones too, on a cluster that stays up; K=main_job: one folder
	@tools/run_tests.py e2e $(K)

.PHONY: e2e-older
e2e-older: images ## tests/e2e/older on a real Kubernetes 1.34, which has no admission policies
	@tools/stage e2e-older

.PHONY: e2e-integrations
e2e-integrations: images ## tests/e2e/integrations beside the real Kueue, LeaderWorkerSet and JobSet controllers
	@tools/stage e2e-integrations

.PHONY: chaos
chaos: images ## ten minutes of kills, edits and refusals on a real cluster; SEED=1, CHAOS_SECONDS
	@CHAOS_SEED=$(or $(SEED),$(CHAOS_SEED)) tools/stage chaos

.PHONY: demo
demo: ## the main job on a real cluster, from nothing; CLUSTER=current uses your own
	@tools/demo/run

.PHONY: demo-shell
demo-shell: ## a shell with kubectl set to the demo cluster
	@tools/demo/shell

.PHONY: demo-down
demo-down: ## remove the demo and its cluster
	@tools/demo/down

.PHONY: clean
clean: ## remove what was built here; the caches below ~/.cache/cachewarm stay
	@rm -rf build
