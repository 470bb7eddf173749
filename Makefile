# Go is all that is needed, and a C compiler where the race detector runs. Tests start redis-servers of their own on
# free ports, and run the official clients of providers; scripts/need-redis and scripts/need-node install what is missing.

GO            ?= go
FUZZTIME      ?= 5s
PROOFTIME     ?= 5m
SOAKTIME      ?= 30m
SEED          ?= $(shell date +%s)000000
PODMAN        ?= podman
IMAGE         ?= sluice
LINT_VERSION  ?= v2.14.0
# How many packages go test works on at a time. Many tests wait more than they compute, and test runs two of these at once.
ATONCE        ?= 3
# How many clients run at a time in clients, and whether it writes down what it has seen.
CLIENTSATONCE ?= 8
CLIENTSFLAGS  ?= -update
# Tags of the command. Without this one grpc keeps traces of its own with golang.org/x/net/trace, a page of which keeps every exported method in
# the binary (docs/install.md).
TAGS          := grpcnotrace
# Packages in which goroutines meet. Their tests run once: race runs them under the race detector and leaves out ALONE; unit runs only ALONE
# of them. The code that decides starts no goroutines, so its packages are not here.
CORE          := . ./store/filestore ./store/memstore ./store/logstore ./store/redisstore ./store/remotestore \
	./eventlog/... ./deadletter/... ./sluicehttp/... ./proxy/... ./daemon/... ./alert/... ./internal/estimate/... ./internal/history/... ./internal/ledger/... ./internal/reading ./internal/sharedlog/... ./lab/...
# More such packages. Their dependencies take long to compile for the detector, so only test-all runs them under it.
CORELARGE     := ./scaler/... ./internal/metrics/... ./internal/topview/... ./internal/redisrun/...
# Groups of the suite with so many grants that a Redis takes long for them. They are about the pool alone, whose code is the same there.
MANYGRANTS    := Shares|Claims
# Groups of the suite that are about the pool alone, which is the same in every store.
POOLONLY      := Shares|Claims|History|Leaks|Stock|Pace|Breaker|Light|Reserve|Ramp|Probe|Turns|Guard|Settle|Observe|Members|Snapshot|Odd|Launch
# More of them: through a daemon they take seconds, for what they show in other stores as well.
ONESTORE      := $(POOLONLY)|Crowd|Kinds|Slots|Scopes
# Tests in which no goroutines meet, and tests that measure what the detector changes: they run without it. APART has the packages they are in
# (TestTestsOfTheCoreRunOnce).
ALONE         := ^TestStore(OnTheModel|WithAProcessForEachSession)?$$/($(POOLONLY))|OnOneServer|ThroughADaemon|SameTrace|Garbage|StormOn|StormThrough|Kills|CutOff|Arrivals|SameDecisions|DecidesTheSame|SameStateAgain|TooLarge|BoundsOfTheirOwn|QuotaLast|AllocatesNothing|CostsNextToNothing|NoCopyOfTheState
APART         := . ./store/filestore ./store/memstore ./store/logstore ./store/redisstore ./store/remotestore ./deadletter ./internal/ledger

.DEFAULT_GOAL := help
.PHONY: help run demo build man release packages image test test-all need-redis fmt-check lint golangci test-binary unit need-node sdk clients store-suites fleet race race-large bench-check bench compare page keda envoy chart grafana compat hosts soak faults-check faults chaos proof fuzz windows

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build, and start the gate on 127.0.0.1:7979
	bin/sluice serve

demo: build ## six agents with one token, first each on its own, then through the gate
	bin/sluice demo

build: ## build bin/sluice
	$(GO) build -tags $(TAGS) -o bin/sluice ./cmd/sluice

man: build ## manual pages from the help of each command, in bin/man (man -M bin/man sluice)
	bin/sluice man bin/man/man1

# The same commit gives the same bytes everywhere (RELEASEFLAGS='-version v0.1.0 -targets linux/amd64').
release: ## static binaries, archives, checksums, bills of materials and a Homebrew formula, in dist
	$(GO) run ./scripts/release $(RELEASEFLAGS)

# The same commit gives the same bytes everywhere (PACKAGESFLAGS='-version v0.1.0 -targets linux/amd64 -only wheels').
packages: ## packages that bring the binary: wheels for Python and packages for npm, in dist
	$(GO) run ./scripts/packages $(PACKAGESFLAGS)

image: ## a container image of the binary for this machine (PODMAN=docker, IMAGE=sluice)
	$(GO) run ./scripts/release -targets linux/$$($(GO) env GOARCH)
	mkdir -p dist/state
	$(PODMAN) build $(if $(findstring podman,$(PODMAN)),--format docker) --build-arg TARGETARCH=$$($(GO) env GOARCH) -f deploy/docker/Dockerfile -t $(IMAGE) .

# Random traces are the same in every run of test, so that a change is judged by what it changes. test-all and proof play new ones.
unit race fleet faults-check: export RAPID_SEED ?= 1

# With nothing cached, test spends most of its time compiling. Compilers are faster if they collect no garbage below a bound, and if they leave
# out what debuggers need. Tests have the tags of the command, so that both share what is compiled. One package of rueidis takes 30 seconds of processor time, and 13 if nothing in it is optimised.
test: export GOFLAGS := $(GOFLAGS) -tags=$(TAGS) '-toolexec=env GOGC=off GOMEMLIMIT=640MiB' -gcflags=all=-dwarf=false '-gcflags=github.com/redis/rueidis/internal/cmds=-N -l -dwarf=false'

# The quick checks come first, so that a slip shows early. Then race compiles while the tests of unit wait for something. The fleet needs the
# whole machine, so it comes last.
test: need-redis need-node fmt-check lint ## all checks and quick tests, with -race over the core
	$(MAKE) -j2 race unit sdk
	$(MAKE) fleet

# Everything that is too long for every change. Run it before you call an issue done, on a machine with nothing else to do: SLUICE_STRICT
# fails what is otherwise forgiven on a busy one.
test-all: test golangci race-large faults-check bench-check store-suites page ## test, and the slow suites: every store in full, the page in Chromium, bench
	RAPID_SEED=0 $(GO) test -count=1 ./internal/... ./provider/... ./retry ./scaler ./sim/... ./sluicehttp
	SLUICE_TRACES=4 $(GO) test -count=1 -run Floors ./test/proof
	SLUICE_LONG=1 $(GO) test -count=1 -run Long ./test/through
	$(GO) test -count=1 -tags slow -run ARealRun ./test/through
	$(GO) test -count=1 -tags slow ./test/canary
	SLUICE_STRICT=1 $(GO) test -count=1 -run 'Shares|LoneClass|ChainAcross' ./test/fleet ./test/agents
	$(GO) test -count=1 -tags slow -run 'KilledHolders|TwoHundredScripts' -v ./test/agents
	$(GO) test -count=1 -tags slow -run TestScale -v ./sim
	scripts/need-intercept-tools git curl gh && scripts/need-node && scripts/need-python && scripts/need-java && $(GO) test -count=1 -timeout 20m -tags slow ./test/intercept
	scripts/need-node && scripts/need-python && $(GO) test -count=1 -timeout 20m -tags slow ./test/api
	$(MAKE) chart grafana envoy compat windows
	SLUICE_STRICT=1 $(MAKE) hosts
	scripts/need-prometheus && $(GO) test -count=1 -tags slow ./test/monitor
	scripts/need-node && scripts/need-python && $(GO) test -count=1 -timeout 20m -tags slow -run Package ./test/clients
	scripts/need-python && $(GO) test -count=1 -timeout 30m -tags slow ./test/python
	scripts/need-install-tools && $(GO) test -count=1 -timeout 90m -tags slow ./test/install
	$(GO) test -count=1 -tags slow -run 'Groff|Systemd|DemoComesOut' ./cmd/sluice ./internal/service
	scripts/need-node && $(GO) test -count=1 -timeout 20m -tags slow -run 'Codex|ThreeMinutes' ./test/sdk

need-redis: ## install redis-server for the tests, where it is missing
	@scripts/need-redis

fmt-check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

# To vet for Windows, Go would compile its library for it first: almost a minute. To check types alone takes ten seconds; windows does the rest.
# test/faults is a module of its own. Its types are checked here, so that a change of the API shows at once; faults-check runs its tests.
lint: ## vet, staticcheck, dropped errors and assignments without effect, in one pass; types on Windows
	cd test/lint && $(GO) build -ldflags='-s -w' -o ../../bin/ . ./systems
	bin/lint ./...
	bin/systems windows/amd64 ./...
	cd test/faults && ../../bin/systems linux/amd64 ./...

# race runs the tests of CORE that are not in ALONE. Groups about the pool alone run on one Redis here; store-suites runs them through a
# daemon, and runs those with many grants on each of them. Tests that run the command share one binary.
# lint has vetted the code already, so go test does not.
unit: need-redis need-node test-binary
	scripts/need-intercept-tools git curl python3
	SLUICE_TEST_BINARY=$(CURDIR)/bin/test/sluice $(GO) test -vet=off -p $(ATONCE) -timeout 14m \
		$$($(GO) list ./... | grep -v -e /test/fleet -e /test/sdk -e /test/matrix | grep -vxF "$$($(GO) list $(CORE))")
	$(GO) test -vet=off -p $(ATONCE) -timeout 14m -run '$(ALONE)' \
		-skip 'TestStoreThroughADaemon/($(ONESTORE))|TestStoreOnOneServer/($(MANYGRANTS))' \
		$(APART)

# Twenty processes ask one Redis. test-all also runs the fleet of one class (LoneClass).
fleet: need-redis
	$(GO) test -vet=off -skip LoneClass ./test/fleet

test-binary: # without what debuggers need it is linked sooner
	$(GO) build -tags $(TAGS) -ldflags='-s -w' -o bin/test/sluice ./cmd/sluice

need-node: ## install node and npm for the tests with clients, where they are missing
	@if [ "$${SLUICE_OFFLINE:-}" != 1 ]; then scripts/need-node; fi

sdk: test-binary ## official clients, a framework and Codex through the gate (SLUICE_OFFLINE=1 leaves them out)
	@if [ "$${SLUICE_OFFLINE:-}" = 1 ]; then echo "sdk: left out, because SLUICE_OFFLINE=1: no official client was run"; \
	else scripts/need-node && SLUICE_TEST_BINARY=$(CURDIR)/bin/test/sluice $(GO) test -vet=off -timeout 14m ./test/sdk ./test/matrix; fi

# Not part of test-all: it takes the versions of today. What was seen goes into docs/clients-table.md and the table of clients; WAYS, or
# CLIENTSFLAGS=, leaves them as they are.
clients: test-binary ## every client that can be installed, at its current version, in six ways through the gate (CLIENTS=codex,opencode, WAYS=run,held)
	scripts/need-intercept-tools gh && scripts/need-node && scripts/need-python
	SLUICE_TEST_BINARY=$(CURDIR)/bin/test/sluice $(GO) test -vet=off -count=1 -timeout 3h -parallel $(CLIENTSATONCE) -tags slow -v -run TestClients ./test/matrix $(CLIENTSFLAGS); \
	status=$$?; $(GO) test ./internal/clients -run TestPageIsMadeFromTheTable -update && exit $$status

store-suites: need-redis ## the whole store suite on the log's model, on a Redis and through a daemon; the log on a Cluster, behind Sentinels, on Valkey
	$(GO) test -timeout 30m -count=1 -tags slow ./store/redisstore -rapid.checks=200
	$(GO) test -timeout 30m -count=1 ./store/logstore ./internal/replica -rapid.checks=200
	$(GO) test -timeout 30m -count=1 -run 'ThroughADaemon|SameDecisions' ./store/remotestore -rapid.checks=200
	$(GO) test -timeout 30m -count=1 -run 'SameDecisions|DecidesTheSame|SameStateAgain' ./store/filestore -rapid.checks=200

race: need-redis ## tests of the core under the race detector
	$(GO) test -vet=off -p $(ATONCE) -timeout 14m -race -skip '$(ALONE)' $(CORE)

race-large: need-redis
	$(GO) test -vet=off -timeout 14m -race $(CORELARGE)

# The nested modules must keep compiling against the public API.
bench-check: need-redis
	cd bench && $(GO) vet ./... && $(GO) test ./...
	cd compare && $(GO) vet ./... && $(GO) test ./...

bench: need-redis ## measure Sluice side by side with other limiters
	cd bench && $(GO) run . $(BENCHFLAGS)

# Peers come from npm and PyPI. COMPAREFLAGS=-write makes docs/comparison.md and its picture anew; '-only Sluice' runs some of it.
compare: build need-redis need-node ## one real fleet with no gate, each peer and Sluice, judged by the provider's log (15 minutes)
	cd compare && $(GO) run . $(COMPAREFLAGS)

page: need-redis need-node ## the live page in a real Chromium, which is installed where it is missing; pictures stay in bin/page
	scripts/need-chromium && cd test/page && $(GO) vet ./... && SLUICE_SCREENSHOTS=$(CURDIR)/bin/page $(GO) test ./...

envoy: need-redis ## a real Envoy asks two gates on one Redis
	scripts/need-envoy >/dev/null && $(GO) test -count=1 -tags slow -v ./test/envoy

hosts: need-redis ## three hosts (network namespaces, as root): cut off, healed, killed, failed over, upgraded from the previous release
	scripts/need-netns && $(GO) test -count=1 -timeout 10m -tags slow -v ./test/hosts

# The packages that have code of their own for a system are checked for each; then Wine runs sluice.exe and the tests of its file store.
SYSTEMS       := ./store/filestore ./internal/statedir ./internal/filelock ./eventlog ./internal/ledger ./test/windows
windows: ## build and check for Windows (amd64, arm64) and macOS, and run sluice.exe under Wine
	GOOS=windows GOARCH=amd64 $(GO) vet $(SYSTEMS)
	GOOS=windows GOARCH=arm64 $(GO) build -tags $(TAGS) -o /dev/null ./cmd/sluice
	GOOS=darwin GOARCH=arm64 $(GO) build -tags $(TAGS) -o /dev/null ./cmd/sluice
	scripts/windows-tests

# Not part of test: KEDA's client brings all of KEDA with it, which takes many minutes to download and compile.
keda: ## drive the scaler with KEDA's own client (takes many minutes to build the first time)
	cd test/keda && $(GO) vet ./... && $(GO) test -vet=off -v ./...

# Helm is built before the tests begin, whose time is limited.
chart: ## the Helm chart with Helm itself, its manifests against the schemas of Kubernetes (takes minutes to build the first time)
	scripts/need-python && cd test/chart && $(GO) vet . && $(GO) tool helm version && $(GO) tool kubeconform -v && $(GO) test -count=1 -timeout 20m .

grafana: ## the dashboard against Grafana's own schemas (takes a minute to build the first time)
	cd test/grafana && $(GO) vet . && $(GO) test -count=1 .

compat: need-redis ## the previous release next to this version, on one store and as client and daemon of each other
	scripts/previous >/dev/null && $(GO) test -count=1 -timeout 20m -tags slow -v ./test/compat

soak: need-redis build ## 10,000 agents and 1,000 tickets a second on a real daemon, SOAKTIME on each store (STORE=, SOAKFLAGS=-h)
	$(GO) run ./test/soak --sluice bin/sluice --stores $(or $(STORE),all) --for $(SOAKTIME) $(SOAKFLAGS)

faults-check: need-redis
	cd test/faults && $(GO) vet ./... && $(GO) test -vet=off ./...

faults: need-redis ## do everything to Redis that can go wrong, under load, and print what became of it (FAULTFLAGS=-h)
	cd test/faults && $(GO) run . $(FAULTFLAGS)

# Each seed takes about ten seconds on each store, so 1,000 seeds take a night. SEED=17 SEEDS=1 STORE=file plays one of them again.
chaos: need-redis build ## random mixes of kills, stops, full disks, store and provider faults, reloads and upgrades (SEED=, SEEDS=, STORE=)
	previous=$$(scripts/previous) && cd test/faults && $(GO) run . chaos -sluice $(CURDIR)/bin/sluice -previous $$previous \
		-seed $(if $(filter command line environment,$(origin SEED)),$(SEED),1) -seeds $(or $(SEEDS),25) -store $(or $(STORE),all) $(CHAOSFLAGS)

# Each test plays new traces for PROOFTIME and prints how many. TRACES=1000 plays so many times as many as test does instead.
proof: ## the property tests of the core for PROOFTIME each, millions of new traces (TRACES=, SEED=)
	@SLUICE_SEED=$(SEED) SLUICE_PROOFTIME=$(if $(TRACES),,$(PROOFTIME)) SLUICE_TRACES=$(TRACES) $(GO) test -timeout 0 -count=1 -v -parallel 1 -p 1 \
		-run 'Provider|Meter|Busy|ReadyAt|Refund|Advancing|Forgetful|CutOff|Withheld|Nothing|Hold' ./internal/meter ./internal/pool ./test/proof 2>&1 | \
		awk '/^=== / { next } { print; fflush() } /^(--- FAIL|FAIL)/ { bad = 1 } END { exit bad }'

golangci: ## golangci-lint with the import rules (takes minutes to build the first time)
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run ./...

fuzz: ## run every fuzz target for FUZZTIME each
	@grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=bench --exclude-dir=faults --exclude-dir=bin . | \
	while IFS=: read -r file target; do \
		target=$${target#func }; \
		echo "$$target in $$(dirname $$file)"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done
