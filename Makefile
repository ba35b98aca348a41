# Drawbridge. `make demo` shows the main job end to end, `make test` tests it.

GO      ?= go
BIN     := build/drawbridge
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
DESKTOP ?= simulated

# Real programs that are attached as hosts; omp takes 1.5 GB.
HOSTS   ?= pi omp servers

.PHONY: demo run build test conformance ci bench lint darwin fuzz deps hosts clean

build: ## the command, for this machine
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./app

run: build ## the agent, in the foreground
	$(BIN) run

demo: build ## the main job end to end; DESKTOP=virtual does it against a real editor
	DRAWBRIDGE=$(BIN) DESKTOP=$(DESKTOP) packaging/demo.sh

test: deps ## all tests, with the race detector where there is a C compiler
	packaging/test.sh

conformance: ## the official MCP suite, over HTTP and over the websocket, as tables (part of test, too)
	DRAWBRIDGE_NEED_NPM=1 $(GO) test -count=1 -v -run '^TestSuite$$' ./packaging/conformance

ci: HOSTS = pi servers
ci: lint darwin test hosts ## what must be green before anything lands

bench: deps ## the figures of the README, as ratios measured in one run
	$(GO) run ./packaging/bench

fuzz: ## every fuzz target for FUZZTIME (30s) each
	packaging/fuzz.sh

hosts: deps ## real omp, pi and MCP servers from npm, attached and called
	DRAWBRIDGE_TEST_HOSTS="$(HOSTS)" $(GO) test -count=1 -v -timeout 20m ./packaging/hosts

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change: $$out"; exit 1; fi
	$(GO) vet ./...

darwin: ## everything must build and vet for both Macs, without cgo
	for arch in arm64 amd64; do \
		CGO_ENABLED=0 GOOS=darwin GOARCH=$$arch $(GO) build -o /dev/null ./... && \
		CGO_ENABLED=0 GOOS=darwin GOARCH=$$arch $(GO) vet ./... || exit 1; \
	done

deps: ## Debian packages for the tests on a real display, where they can be installed
	packaging/deps.sh

clean:
	rm -rf build
