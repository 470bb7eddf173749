# Go is all that is needed, and a C compiler where the race detector runs.

GO            ?= go
FUZZTIME      ?= 5s
LINT_VERSION  ?= v2.14.0
# What runs under the race detector: the code that goroutines meet in.
CORE          := . ./internal/... ./store/... ./retry/... ./eventlog/... ./deadletter/...

.DEFAULT_GOAL := help
.PHONY: help run build test fmt-check vet staticcheck unit race bench-check bench lint fuzz

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and watch six agents share one token, in virtual time
	bin/sluice simulate six-committers

build: ## build bin/sluice
	$(GO) build -o bin/sluice ./cmd/sluice

# In order of cost, so that a slip shows early.
test: fmt-check vet staticcheck unit race bench-check ## all checks and tests, with -race over the core

fmt-check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck: ## static analysis, as part of test
	$(GO) tool staticcheck ./...

unit:
	$(GO) test ./...

race: ## tests of the core under the race detector
	$(GO) test -race $(CORE)

# The nested module must keep compiling against the public API.
bench-check:
	cd bench && $(GO) vet ./... && $(GO) test ./...

bench: ## measure Sluice side by side with other limiters
	cd bench && $(GO) run . $(BENCHFLAGS)

lint: ## golangci-lint with the import rules (takes minutes to build the first time)
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run ./...

fuzz: ## run every fuzz target for FUZZTIME each
	@grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=bench . | \
	while IFS=: read -r file target; do \
		target=$${target#func }; \
		echo "$$target in $$(dirname $$file)"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done
