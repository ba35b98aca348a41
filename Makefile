# Drawbridge. `make demo` shows the main job end to end, `make test` tests it.

GO      ?= go
BIN     := build/drawbridge
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
DESKTOP ?= simulated
APP     := build/Drawbridge.app
TRAY    ?= own
SIGN    ?= auto
PACK     = CGO_ENABLED=0 $(GO) run -gcflags=all=-dwarf=false ./packaging/pack

# Addresses in the Homebrew cask: of the zip, where #{version} is the version, and
# of the page about the app. Without them there is no cask.
URL      ?=
HOMEPAGE ?=

# Real programs that are attached as hosts, or started as such; omp takes 1.5 GB.
HOSTS   ?= pi omp claude codex gemini servers

.PHONY: demo run build test conformance mac-check mac-torture killswitch ci torture bench lint darwin fuzz deps hosts clean app dist identity app-check codesign notarize dmg

build: ## the command, for this machine
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./app

run: build ## the agent, in the foreground
	$(BIN) run

demo: build ## the main job end to end; DESKTOP=virtual does it against a real editor
	DRAWBRIDGE=$(BIN) DESKTOP=$(DESKTOP) packaging/demo.sh

test: deps ## all tests, with the race detector where there is a C compiler
	packaging/test.sh
	packaging/app-check.sh

app: ## Drawbridge.app for both kinds of Mac, signed; SIGN=adhoc, TRAY=systray (on a Mac), REPIN=1
	GO=$(GO) $(PACK) app -version $(VERSION) -out $(APP) -tray $(TRAY) -sign $(SIGN) $(if $(REPIN),-repin)

dist: app ## what is handed out: a zip, its SHA-256, and with URL=… HOMEPAGE=… a Homebrew cask
	$(PACK) dist -app $(APP) -url '$(URL)' -homepage '$(HOMEPAGE)'

identity: ## a signing identity of your own, made once, outside the tree
	$(PACK) identity

app-check: ## makes the app in each way and has it checked by several verifiers
	packaging/app-check.sh
	$(GO) test -count=1 $(addprefix ./packaging/,bundle icon install login macho pack sign verify)

codesign notarize dmg: ## on a Mac: sign with codesign, have Apple notarize, make a disk image
	packaging/mac.sh $@ $(APP)

conformance: ## the official MCP suite, over HTTP and over the websocket, as tables (part of test, too)
	DRAWBRIDGE_NEED_NPM=1 $(GO) test -count=1 -v -run '^TestSuite$$' ./packaging/conformance

killswitch: ## the model switch against the official clients (part of test, too) and the programs of HOSTS, and its figures
	DRAWBRIDGE_NEED_NPM=1 $(GO) test -count=1 -v ./packaging/killswitch
	DRAWBRIDGE_TEST_HOSTS="$(HOSTS)" $(GO) test -count=1 -v -timeout 30m -run 'TestModels|TestChain|TestCLIs' ./packaging/hosts
	$(GO) test -run '^$$' -bench . -benchtime 2s ./packaging/killswitch

ci: HOSTS = pi servers
ci: lint darwin test hosts ## what must be green before anything lands

torture: deps ## hand-backs, stops and kills at random moments, ten clients at once, and how long it took (short versions are part of test)
	$(GO) run ./packaging/torture

mac-torture: deps ## the same as torture, on the macOS sources over the stand-in
	packaging/standin/test.sh torture

mac-check: deps ## the macOS sources: against Apple's headers, and run over a stand-in for the frameworks
	$(GO) test -count=1 -v -run 'TestOurs|TestPlantedFaults|TestBinary' ./packaging/sdkcheck | grep -v '^=== RUN'
	packaging/standin/test.sh

bench: deps ## the figures of the README, as ratios measured in one run
	$(GO) run ./packaging/bench

fuzz: ## every fuzz target for FUZZTIME (30s) each
	packaging/fuzz.sh

hosts: deps ## real omp, pi and MCP servers from npm, attached and called
	DRAWBRIDGE_TEST_HOSTS="$(HOSTS)" $(GO) test -count=1 -v -timeout 30m ./packaging/hosts

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
