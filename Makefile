# All tasks of contributors and CI. `make` alone lists the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Only the race detector needs cgo. Disabling it everywhere else lets builds and tests share a cache.
export CGO_ENABLED := 0

PKG       ?= ./...
# A number of inputs, not a time: a worker that is cut off by a time limit counts as a failure.
FUZZTIME  ?= 10000x
BENCHTIME ?= 1s
CHAOS     ?= 60s
ROUNDS    ?= 1
HOLD      ?= 10m
FLAPPING  ?= 10m
KILLS     ?= 1000
HOSTILE   ?= 10m
# Virtual nodes that see a server restart in make mesh.
RESTARTED ?= 500

# The build time is the time of the commit, so that builds of one commit are identical.
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT     ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BUILD_TIME ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo unknown)
LDFLAGS     = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.buildTime=$(BUILD_TIME)

# Each run writes its events to dist/test, from which .ci/run computes its summary.
BIN     := $(CURDIR)/.bin
RESULTS := dist/test
FORMAT  ?= pkgname
SUM      = mkdir -p $(RESULTS) && $(BIN)/gotestsum --format=$(FORMAT) --jsonfile=$(RESULTS)/$@
# The linters vet all packages, so the tests need not.
GOTEST   = $(SUM)$(1).json -- -vet=off
# In CI, where tests share the machine with others, up to four failed ones are run once more, and the summary names those that
# passed only then.
RERUN    = $(if $(CI),--rerun-fails=1 --rerun-fails-max-failures=4)
# For tests of one package with browsers, clients or containers. Flags of the tests follow -args.
SYSTEM   = $(SUM).json $(RERUN) --packages=./internal/test/$(1) -- -vet=off -count=1

# In CI, large programs that run only for seconds are compiled without optimization. For helm, this takes 37 % less CPU time.
QUICKLY  = $(if $(CI),-gcflags='all=-dwarf=false -N -l')

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  \033[1m%-11s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev demo
demo: build ## run the demo of compose.yaml without Docker: server, console and three Tailscale clients, until Ctrl-C
	@echo "Building the Tailscale clients, which takes some minutes the first time"
	@$(MAKE) --no-print-directory --silent clients
	@PATH="$(CURDIR)/dist:$${XDG_CACHE_HOME:-$$HOME/.cache}/fairlead-clients/v1.102.5:$$PATH" deploy/demo/local.sh

dev: build ## run a server on SQLite, with all its files in dist/dev
	@mkdir -p dist/dev
	@test -e dist/dev/config.yaml || printf '%s\n' \
		'server_url: http://127.0.0.1:8080' \
		'listen_addr: 127.0.0.1:8080' \
		'unix_socket: $(CURDIR)/dist/dev/fairlead.sock' \
		'noise: {private_key_path: $(CURDIR)/dist/dev/noise.key}' \
		'database: {type: sqlite, sqlite: {path: $(CURDIR)/dist/dev/fairlead.sqlite}}' \
		'log: {level: debug}' >dist/dev/config.yaml
	dist/fairlead serve --config dist/dev/config.yaml

# Without npm the console is built without its pages, and says so.
.PHONY: build
build: $(if $(shell command -v npm 2>/dev/null),web) ## build dist/fairlead and dist/fairlead-console, static and stamped with their version
	go build -trimpath -ldflags '$(LDFLAGS)' -o dist/ ./cmd/fairlead ./cmd/fairlead-console

.PHONY: web web-check
web: console/web/dist/index.html ## build the pages of the console into console/web/dist
web-check: console/web/dist/index.html ## check types, style, unit tests and sizes of the console's pages
	cd console/web && npm run check && npm test && npm run budget
console/web/node_modules/.package-lock.json: console/web/package-lock.json
	cd console/web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@
console/web/dist/index.html: console/web/node_modules/.package-lock.json api/types.d.ts console/web/index.html \
	console/web/vite.config.ts $(shell find console/web/src -type f)
	cd console/web && npm run build
	@touch $@

.PHONY: site site-dev site-check
site: site/node_modules/.package-lock.json ## build the documentation site into dist/site (SITE_BASE=/fairlead/ if it is not at the root of its host)
	cd site && npm run --silent build
site-dev: site/node_modules/.package-lock.json ## serve the documentation site, with live updates, until Ctrl-C
	cd site && npm run --silent dev
# The style checker and the compiler are those of the console.
site-check: site console/web/node_modules/.package-lock.json $(BIN)/gotestsum ## check links, anchors and requests of the site, and its code
	cd site && ../console/web/node_modules/.bin/tsc && ../console/web/node_modules/.bin/biome check --config-path=../console/web .
	$(call GOTEST) -count=1 ./internal/test/sitecheck -site=$(CURDIR)/dist/site
site/node_modules/.package-lock.json: site/package-lock.json
	cd site && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: console-demo
NODES ?= 200
PORT  ?= 3000
console-demo: web ## run the console with NODES=200 virtual nodes and a history, on PORT=3000, until Ctrl-C (NODES=0: empty; PG=1: PostgreSQL)
	go test -c -o dist/console-demo ./internal/test/consoletest
	exec dist/console-demo -test.run='^TestDemo$$' -test.timeout=0 -demo -nodes=$(NODES) -port=$(PORT) $(if $(PG),-postgres)

.PHONY: console-test screens
console-test: export LOOKS ?= all
console-test: web $(BIN)/gotestsum internal/test/oidctest/node_modules/.package-lock.json ## test the console in a browser, with a real server, PostgreSQL and nginx (ONLY=login: one file; LOOKS=few: as in CI, check accessibility in fewer windows and themes)
	$(call SYSTEM,consoletest) -timeout=40m -run='^TestBrowser$$' -args -browser -only=$(ONLY)
screens: web $(BIN)/gotestsum internal/test/oidctest/node_modules/.package-lock.json ## take screenshots of every screen into dist/screens (SCREENS=few: in two windows only; SCREENS=docs: those in docs/images)
	$(call SYSTEM,consoletest) -timeout=60m -run='^TestScreens$$' -args -screens=$(or $(SCREENS),all) -only=$(ONLY)

.PHONY: test
test: $(BIN)/gotestsum ## run the tests (PKG=./internal/ledger for one package)
	$(SUM).json -- -skip='^Test(Ratio|Figure)' $(PKG)

.PHONY: race
# SQLite (translated from C) and zstd are large loops over unshared memory: the race detector would make them ten times
# slower. Do not add packages that use generic types such as sync.Map: when a test is linked, their instantiations without
# the race detector replace those with it, and it then reports races that do not exist.
UNWATCHED = $(foreach code,modernc.org github.com/klauspost/compress,-gcflags='$(code)/...=-race=false -dwarf=false')
# One more than CPUs: tests spend a third of their time waiting for databases and timers.
RACE_PACKAGES = $(shell echo $$(($$(nproc) + 1)))
# Packages that start no goroutines outside their tests, so the race detector has nothing to find. Many of them test thousands of
# random inputs.
PURE  = $(shell go list ./internal/mesh/... ./internal/netmap ./internal/policy/... ./internal/backup ./internal/config ./internal/headscale \
	./internal/identity ./internal/spelling ./internal/textdiff ./internal/apidocs ./internal/test/archtest ./internal/test/doccheck/... ./internal/test/speccheck ./internal/test/apitest \
	./internal/test/monitortest ./internal/test/packagetest ./api/... ./deploy/package/...)
# These test processes, containers or browsers, which the race detector does not cover. They have their own targets.
SUITES = $(addprefix %/internal/test/,chaos chaos/replica clienttest consoletest deploytest deploytest/% e2e hostiletest meshtest movetest sitecheck) %/bench/load
RACED = $(filter-out $(PURE) $(SUITES),$(shell go list ./...))
# By default, the race detector makes a process wait for a second before it exits. No test is run once more if there is a data race.
race: $(BIN)/gotestsum ## run the product's tests, with the race detector except for pure functions (PKG=./internal/ledger for one package)
	@status=0; \
	(export CGO_ENABLED=1 GORACE=atexit_sleep_ms=0; \
		$(SUM).json $(if $(RERUN),$(RERUN) --rerun-fails-abort-on-data-race) --packages='$(strip $(if $(filter ./...,$(PKG)),$(RACED),$(PKG)))' -- \
			-vet=off -race $(UNWATCHED) -p=$(RACE_PACKAGES) -timeout=15m) || status=1; \
	$(if $(filter ./...,$(PKG)),$(call GOTEST,-pure) -skip='^Test(Ratio|Figure)' $(PURE) || status=1;) \
	exit $$status

.PHONY: fuzz
# Each package is linked once, not once per fuzz target. Restoring a backup takes a tenth of a second, so FuzzRestore gets a
# tenth of the inputs. CI builds without coverage guidance: instrumenting everything would cost a full build and find nothing
# more with so few inputs. Databases are in memory, because a busy disk would make an input look hung.
fuzz: $(BIN)/gotestsum ## run each fuzz target in turn for FUZZTIME inputs (PKG=./internal/wire for one package; FUZZED="./internal/h2 ./internal/wire": only these, as CI does)
	@mkdir -p dist/fuzz; status=0; \
	for dir in $(if $(filter ./...,$(PKG)),$(or $(FUZZED),$(call having,Fuzz)),$(PKG)); do \
		bin=$(CURDIR)/dist/fuzz/$$(basename $$dir).test; \
		go test -c $(if $(CI),-ldflags='-s -w',-fuzz=.) -o $$bin $$dir; \
		for name in $$(cd $$dir && $$bin -test.list='^Fuzz'); do \
			inputs=$(FUZZTIME); [[ $$name != FuzzRestore || $$inputs != *0x ]] || inputs=$${inputs%0x}x; \
			echo "fuzz $$dir $$name $$inputs"; \
			(cd $$dir && mkdir -p $(CURDIR)/$(RESULTS) && \
				TMPDIR=$(or $(wildcard /dev/shm),/tmp) $(BIN)/gotestsum --format=$(FORMAT) --jsonfile=$(CURDIR)/$(RESULTS)/fuzz-$$name.json --raw-command -- \
				go tool test2json -t -p $$dir $$bin -test.v=test2json -test.run='^$$' -test.fuzz="^$$name\$$" -test.fuzztime=$$inputs \
				-test.fuzzminimizetime=1x -test.fuzzcachedir=$$(go env GOCACHE)/fuzz/$$(go list .) -test.timeout=10m) || status=1; \
		done; \
	done; exit $$status

# having lists the packages with a test function of this name, so that no others are linked for nothing.
having = $(sort $(dir $(shell grep -rlE --include='*_test.go' --exclude-dir=node_modules '^func $(1)' .)))

.PHONY: bench
bench: ## run the benchmarks (BENCHTIME=1x: once each)
	go test -vet=off -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) $(call having,Benchmark)

.PHONY: packets
packets: ## check with a million random packets that the clients' own filter agrees with the policy (the tests use fewer)
	go test ./internal/netmap -count=1 -run ClientsAllow -packets 1000000 -v

.PHONY: figures
figures: FORMAT = standard-verbose
figures: export CROWD ?=
# In CI, up to three failed measurements are repeated, alone, and the summary names those that passed only then.
figures: web $(BIN)/gotestsum ## check the promised ratios and figures, without the race detector and with nothing else running (CROWD=2000: as in CI, the console with 2,000 nodes instead of 5,000)
	$(SUM).json $(if $(CI),--rerun-fails=1 --rerun-fails-max-failures=3) --packages='$(strip $(call having,Test(Ratio|Figure)))' -- \
		-vet=off -p=1 -count=1 -v -timeout=20m -run='^Test(Ratio|Figure)'

.PHONY: speccheck
speccheck: $(BIN)/gotestsum ## after all other tests: check that each statement of the specification was proved by a test that ran
	$(call GOTEST) -count=1 ./internal/test/speccheck -results=$(CURDIR)/$(RESULTS)

.PHONY: chaos chaos-long
chaos: clients $(BIN)/gotestsum ## break replicas, PostgreSQL and networks under load for CHAOS, then compare (CHAOS=1h)
	$(call GOTEST) -timeout=0 -count=1 -parallel=8 ./internal/test/chaos -chaos=$(CHAOS) -artefacts=$(CURDIR)/dist/chaos
chaos-long: CHAOS = 30m
chaos-long: FORMAT = standard-verbose
chaos-long: clients $(BIN)/gotestsum ## break a whole deployment for CHAOS, on an otherwise idle machine; the results are in dist/chaos (SEED=1: repeat the faults of a run)
	$(call GOTEST) -timeout=0 -count=1 -v -run='^TestDeployment' ./internal/test/chaos -chaos=$(CHAOS) -seed=$(or $(SEED),0) -strict -artefacts=$(CURDIR)/dist/chaos

.PHONY: sqlite-kills
sqlite-kills: FORMAT = standard-verbose
sqlite-kills: $(BIN)/gotestsum ## kill a server on SQLite KILLS times under writes, copy its files, fill its disk or cut its power, and compare (CI: 20 times)
	$(call GOTEST) -timeout=0 -count=1 -v -run='SQLite' ./internal/test/chaos -kills=$(KILLS)

.PHONY: failover
failover: FORMAT = standard-verbose
failover: $(BIN)/gotestsum ## measure how long writes and streams pause when a replica, the primary or the balancer fails, on an idle machine; the table is in dist/chaos/failover.md
	$(call GOTEST) -timeout=0 -count=1 -v -run='^Test(FailoverTimes|PausesAreMeasured)' ./internal/test/chaos -failover -strict -artefacts=$(CURDIR)/dist/chaos

.PHONY: hostile
hostile: FORMAT = standard-verbose
hostile: $(BIN)/gotestsum ## attack a server as a stranger for HOSTILE while 300 nodes keep working (HOSTILE=35s: as CI does)
	$(call GOTEST) -timeout=0 -count=1 -v ./internal/test/hostiletest -hostile=$(HOSTILE)

.PHONY: mesh
mesh: clients $(BIN)/gotestsum ## run servers, real clients and hundreds of virtual nodes through restarts and failures (ROUNDS=20; RESTARTED=200: fewer nodes that see a restart, as in CI)
	$(call SYSTEM,meshtest) -timeout=60m -skip='^Test(Ratio|Figure)' -args -rounds=$(ROUNDS) -restart-nodes=$(RESTARTED)

.PHONY: postgres-versions
postgres-versions: ## run the tests of the storage on other versions of PostgreSQL, with npm (VERSIONS="13 14 16 18")
	@for major in $(or $(VERSIONS),13 14 16 18); do \
		internal/test/pgtest/install.sh $$major $(CURDIR)/dist/postgres/$$major && \
		PGTEST_BIN=$(CURDIR)/dist/postgres/$$major/bin go test -count=1 -timeout=30m ./internal/sqlstore || exit 1; \
	done

.PHONY: rolling
rolling: UPGRADES ?= 5
rolling: $(BIN)/gotestsum ## upgrade three replicas and roll them back under load (UPGRADES=5; OLDER=<commit> upgrades from that commit)
	$(call SYSTEM,meshtest) -timeout=60m -run='^TestReplicasOfTwoReleasesWorkTogether$$' -args -upgrades=$(UPGRADES) -older=$(OLDER)

.PHONY: clients clients-all
clients: ## build the oldest and the newest Tailscale client for the tests; later runs reuse them
	go test -vet=off -timeout=0 -count=1 -run='^TestClientsAreWhatTheySay$$' ./internal/test/clienttest
clients-all: ## build all supported Tailscale clients
	go test -vet=off -timeout=0 -count=1 -run='^TestClientsAreWhatTheySay$$' ./internal/test/clienttest -all-clients

.PHONY: clients-test
clients-test: $(BIN)/gotestsum ## test the harness for real clients: networks, devices, isolation
	$(call SYSTEM,clienttest) -timeout=10m

.PHONY: e2e e2e-matrix
e2e: CLIENTS = v1.74.1,v1.102.5
e2e-matrix: CLIENTS = all
e2e: ## run real clients, the oldest and the newest, against the server; as root also with network devices
e2e-matrix: ## run all supported clients against the server
# Six tests at a time: they mostly wait for clients.
e2e e2e-matrix: $(BIN)/gotestsum internal/test/oidctest/node_modules/.package-lock.json $(BIN)/dex
	$(call SYSTEM,e2e) -timeout=30m -parallel=6 -skip='^Test(Ratio|Figure)' -args -clients=$(CLIENTS)

.PHONY: flapping
flapping: FORMAT = standard-verbose
flapping: clients $(BIN)/gotestsum ## let one of two subnet routers come and go for FLAPPING, as root, and check that no connection moves (make e2e: three times)
	$(call GOTEST) -timeout=0 -count=1 -v -run='^TestOtherRouterTakesOver$$' ./internal/test/e2e -clients=v1.102.5 -flapping=$(FLAPPING)

.PHONY: relay-figures relay-away
relay-figures relay-away: FORMAT = standard-verbose
relay-figures: $(BIN)/derper $(BIN)/gotestsum ## compare the throughput and memory of our relay with the stock one, on an otherwise idle machine
	$(call GOTEST) -timeout=30m -count=1 -v -run='^TestRelayIsAsGoodAsTheStockOne$$' ./cmd/fairlead -derper=$(BIN)/derper
relay-away: AWAY = 10m
relay-away: $(BIN)/gotestsum ## check that relays admit the nodes they know while the server is away for AWAY (CI: for a moment)
	$(call GOTEST) -timeout=0 -count=1 -v -run='^TestRelaysOfARegionServe' ./cmd/fairlead -away=$(AWAY)

.PHONY: e2e-identity
e2e-identity: ## sign in with glewlwyd, an identity provider that does not notice who left; needs the Debian packages glewlwyd and sqlite3
	go test -tags=identity -timeout=10m -count=1 -run=Glewlwyd ./internal/test/e2e -clients=v1.74.1,v1.102.5

.PHONY: move
move: $(BIN)/gotestsum ## move real clients from a real Headscale server to this one and back; builds Headscale once
	$(call SYSTEM,movetest) -timeout=30m $(if $(HEADSCALE),-args -headscale=$(HEADSCALE))

.PHONY: headscale move-short move-matrix
headscale move-short: HEADSCALE ?= v0.28.0
headscale: ## build the version of Headscale that move-short needs; later runs reuse it
	go test -vet=off -timeout=0 -count=1 -run='^TestHeadscaleIsWhatItSays$$' ./internal/test/movetest -headscale=$(HEADSCALE)
move-short: $(BIN)/gotestsum ## move real clients, the oldest and the newest, from one version of Headscale and back, on both engines
	$(call SYSTEM,movetest) -timeout=10m -run='^Test(HeadscaleIsWhatItSays|ClientsMoveAndReturnWithoutSigningIn)$$' -args -headscale=$(HEADSCALE) -middle=v1.102.5

HEADSCALES ?= v0.22.3 v0.23.0 v0.25.1 v0.26.1 v0.27.1 v0.28.0 v0.29.2
move-matrix: ## move real clients from each version in HEADSCALES and back; builds each of them once, which takes minutes
	@mkdir -p dist; failed=; for version in $(HEADSCALES); do \
		if go test -vet=off -count=1 -timeout=30m -run='^TestClientsMoveAndReturnWithoutSigningIn$$' ./internal/test/movetest -headscale=$$version >dist/move-$$version.log 2>&1; \
		then echo "$$version: ok"; else echo "$$version: failed, see dist/move-$$version.log"; failed=yes; fi; \
	done; test -z "$$failed"

# The identity providers with which people sign in.
internal/test/oidctest/node_modules/.package-lock.json: internal/test/oidctest/package-lock.json
	cd internal/test/oidctest && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@
$(BIN)/dex: internal/test/oidctest/dex/go.mod
	cd internal/test/oidctest/dex && go build -trimpath $(QUICKLY) -ldflags='-s -w' -o $@ github.com/dexidp/dex/cmd/dex
	@touch $@

.PHONY: deploy deploy-ha deploy-hold deploy-source
deploy: $(BIN)/gotestsum ## start complete deployments with Docker, as root, and check them
	$(call SYSTEM,deploytest) -timeout=60m -parallel=6 -skip='^TestStreamStaysOpenThroughTheProxy$$' -args -deploy
deploy-source: $(BIN)/gotestsum ## let setup.sh compile every image from source; make deploy does not compile the programs in Docker
	$(call GOTEST) -timeout=60m -count=1 -run='^TestImagesAreBuiltFromSource$$' ./internal/test/deploytest -deploy -from-source
deploy-ha: $(BIN)/gotestsum ## start deploy/compose/ha.yaml, and kill a replica, a relay and the primary, as docs/high-availability.md does
	internal/test/deploytest/images.sh ha
	$(call GOTEST) -timeout=30m -count=1 -v -run='^TestHighAvailability$$' ./internal/test/deploytest -deploy -ha
deploy-hold: $(BIN)/gotestsum ## hold a device's stream open through the proxy for HOLD; can run beside everything else
	$(call GOTEST) -timeout=0 -count=1 -run='^TestStreamStaysOpenThroughTheProxy$$' ./internal/test/deploytest -deploy -hold=$(HOLD)

.PHONY: load load-10k load-lists load-scim quiet scale meshes storm replicas reports load-short
load:       LOAD = -run='^TestRatioToReference$$' ./bench/load -nodes=$(or $(N),2000) -rounds=$(ROUNDS)
load-10k:   LOAD = -run='^TestFigureQuietNodes$$' ./bench/load -nodes=10000 -idle=1m
load-lists: LOAD = -run='^TestFigureLists$$' ./bench/load -nodes=2000 -lists=15s -turns=4 -changes=5
load-scim:  LOAD = -run='^TestFigureSCIM$$' ./bench/load -nodes=$(or $(N),2000)
quiet:      LOAD = -run='^TestFigureQuietNodes$$' ./bench/load -nodes=1000 -idle=10m
scale:      SIZES = 500,2000,10000
scale:      LOAD = -run='^TestScale$$' ./bench/load -scale=$(or $(N),$(SIZES)) -generators=$(or $(GENERATORS),1) -rules=$(or $(RULES),0) -headscale=$(HEADSCALE) -idle=1m -results=$(CURDIR)/dist/scale
storm:      LOAD = -run='^TestStorm$$' ./bench/load -storm=$(or $(N),10000) $(if $(SPIN),-spin) $(if $(BURST),-burst) -via=$(VIA)
reports:    LOAD = -run='^TestReports$$' ./bench/load -reports=$(or $(N),1000)
replicas:   LOAD = -run='^TestReplicas$$' ./bench/load -spread=$(or $(N),50000)
meshes:     LOAD = -run='^TestManyMeshes$$' ./bench/load -meshes=$(or $(N),200) -idle=1m
load-short: LOAD = ./bench/load
load: ## compare CPU and memory under 2,000 nodes with the reference (N=500 ROUNDS=3)
load-10k: ## connect 10,000 nodes and measure them while idle
load-lists: ## read lists of 2,000 nodes for 60 seconds, with and without concurrent changes
load-scim: ## push 1,000 users and 50 groups with SCIM while 2,000 nodes are connected
quiet: ## measure 1,000 idle nodes for 10 minutes
scale: ## measure the cost of 500, 2,000 and 10,000 nodes beside the reference; tables and plots are in dist/scale (N=500,2000 GENERATORS=2; RULES=100: with an access policy; HEADSCALE=file: that program too)
storm: ## let 9,000 of 10,000 nodes reconnect, beside the reference (N=2000; BURST=yes N=4000: all in the same instant instead of 64 at a time; without the reference: SPIN=yes: while other work takes a core; VIA=nginx or tls: through a proxy, or with TLS)
reports: ## commit 1,000 endpoint reports per second, and measure the latency of everything else meanwhile (N=200)
replicas: ## connect 50,000 nodes to four replicas with a policy of 500 rules, kill one of them, and save the policy (N=10000)
meshes: ## host 200 meshes, each a process of its own, on one PostgreSQL (N=50)
load-short: ## the same with 200 nodes and in two minutes, as part of figures
quiet load load-10k load-lists load-scim scale meshes storm replicas reports load-short: FORMAT = standard-verbose
quiet load load-10k load-lists load-scim scale meshes storm replicas reports load-short: $(BIN)/gotestsum
	$(call GOTEST) -timeout=$(if $(filter scale,$@),0,60m) -count=1 -v $(LOAD)

.PHONY: chart
chart: build $(BIN)/helm $(BIN)/gotestsum ## check the Helm chart: what it renders, and that the server accepts it
	mkdir -p $(RESULTS) && cd deploy/helm/charttest && \
		$(BIN)/gotestsum --format=$(FORMAT) --jsonfile=$(CURDIR)/$(RESULTS)/$@.json -- -count=1 ./...

.PHONY: lint workflows
lint: $(BIN)/golangci-lint workflows ## check style and common mistakes
	$(BIN)/golangci-lint run $(PKG)
workflows: $(BIN)/actionlint ## check the GitHub workflows, with shellcheck if it is installed
	$(BIN)/actionlint

.PHONY: vulnerabilities
vulnerabilities: $(BIN)/govulncheck ## check the code that both programs call for known vulnerabilities, with data from vuln.go.dev (GOVULNDB=file:///dir: a copy)
	@status=0; $(BIN)/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./cmd/fairlead ./cmd/fairlead-console || status=$$?; \
		[ $$status = 0 ] || [ $$status = 3 ] || echo "no vulnerability report: the data of vuln.go.dev is not available, or the code does not build" >&2; \
		exit $$status

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## format the code
	$(BIN)/golangci-lint fmt

.PHONY: check check-rest gen-check
# The tests mostly wait for databases and timers, so lint and web-check run beside them. The pages are built first, because
# the console's tests embed them.
check: ## what to run before sending a change: generated code, lint, race tests of the product, the console's pages
	@$(MAKE) --no-print-directory gen-check
	@$(MAKE) --no-print-directory web
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target race check-rest
check-rest:
	@$(MAKE) --no-print-directory --jobs=1 --keep-going lint web-check
# Compares with the state before, so that the check also works in a tree with uncommitted changes.
gen-check: ## check that the generated code is current
	@changes() { git status --porcelain && git diff; }; before=$$(changes) && $(MAKE) --no-print-directory gen gen-ts && \
		[ "$$(changes)" = "$$before" ] || { git diff --stat; echo "run make gen gen-ts and commit the result" >&2; exit 1; }

.PHONY: gen
gen: $(BIN)/oapi-codegen ## regenerate the Go code and docs/cli.md
	go generate ./...

.PHONY: text-sample
text-sample: ## print texts drawn at random, for a review of the language (SEED=commit: another draw; COMMENTS=yes: code comments too; DOCS=yes: 100 sentences of README and docs instead, DOCS=docs/x.md: of this document)
	@go run ./internal/test/doccheck/textsample -seed=$(or $(SEED),$(COMMIT)) $(if $(COMMENTS),-comments) $(if $(DOCS),-docs) $(filter-out yes,$(DOCS))

.PHONY: man
man: build ## write the man pages into dist/man/man1
	dist/fairlead man --dir dist/man/man1

.PHONY: packages release packages-test
packages: ## build .deb and .rpm of server and console for amd64 and arm64 into dist/packages
release: ## build all files of a release into dist/release and package repositories into dist/repository, signed if there are keys (docs/release.md)
packages release: export VERSION := $(VERSION)
packages release: export COMMIT := $(COMMIT)
packages release: export BUILD_TIME := $(BUILD_TIME)
packages release: export LDFLAGS := $(LDFLAGS)
packages release: export NFPM := $(BIN)/nfpm
packages release: $(BIN)/nfpm web
	deploy/package/build.sh $@ dist/$@
	@[ $@ = packages ] || deploy/package/repository.sh dist/release dist/repository $(EARLIER)
	@[ $@ = packages ] || deploy/package/sign.sh dist/release dist/repository
	@if [[ $@ = release && "$$VERSION" =~ ^v[0-9]+\.[0-9]+\.[0-9]+$$ ]]; then \
		sed "1i# openapi.yaml of $$VERSION, the last release. Only make release writes this file." api/openapi.yaml >api/released.yaml; \
		echo "commit api/released.yaml: from now on the API is compared with that of $$VERSION"; \
	fi
packages-test: $(BIN)/nfpm $(BIN)/gotestsum web ## build a release and test its packages in containers, one with systemd (as CI does: ARM64=no: without packages for arm64; AGAIN=no: without a second build to compare)
	$(call GOTEST) -timeout=30m -count=1 -parallel=4 ./internal/test/packagetest -packages $(if $(filter no,$(ARM64)),-arm64=false) $(if $(filter no,$(AGAIN)),-again=false)

.PHONY: gen-ts
# An unchanged file keeps its timestamp, so that the pages are not rebuilt.
gen-ts: api/node_modules/.package-lock.json ## regenerate the TypeScript types, with npm
	@mkdir -p dist && cp --preserve=timestamps api/types.d.ts dist/types.before
	npm --prefix api run --silent generate
	@! cmp --silent dist/types.before api/types.d.ts || touch --reference=dist/types.before api/types.d.ts

api/node_modules/.package-lock.json: api/package-lock.json
	npm --prefix api ci --silent --no-audit --no-fund
	@touch $@

.PHONY: dashboards
dashboards: ## check the dashboards against the types that Grafana publishes, with npm
	npm --prefix internal/test/monitortest/schema ci --silent --no-audit --no-fund
	npm --prefix internal/test/monitortest/schema run --silent check

.PHONY: ci before-release
ci: ## run what CI runs, on this machine
	.ci/run
# One after the other, because some of them use the same files.
before-release: ## run in full what CI shortens or leaves out to save time
	@status=0; for target in console-test mesh packages-test deploy-source fuzz bench figures; do $(MAKE) --no-print-directory $$target || status=1; done; exit $$status

.PHONY: tools
tools: $(BIN)/gotestsum $(BIN)/oapi-codegen $(BIN)/golangci-lint $(BIN)/nfpm $(BIN)/helm $(BIN)/actionlint ## install the pinned tools into .bin

$(BIN)/gotestsum:     tool = gotest.tools/gotestsum@v1.13.0
$(BIN)/oapi-codegen:  tool = github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.1
$(BIN)/helm:          tool = helm.sh/helm/v3/cmd/helm@v3.22.0
$(BIN)/golangci-lint: tool = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.14.0
$(BIN)/nfpm:          tool = github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
$(BIN)/actionlint:    tool = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
$(BIN)/govulncheck:   tool = golang.org/x/vuln/cmd/govulncheck@v1.8.0
$(BIN)/derper:        tool = tailscale.com/cmd/derper@$(shell go list -m -f '{{.Version}}' tailscale.com)

# A tool is installed if it is missing or has another version.
$(BIN)/%: FORCE
	@have=$$(go version -m $@ 2>/dev/null | awk '$$1 == "mod" { print $$3 }') || true; \
	test "$$have" = "$(lastword $(subst @, ,$(tool)))" || GOBIN=$(BIN) go install -trimpath $(if $(filter %/helm %/oapi-codegen %/actionlint,$@),$(QUICKLY)) $(tool)

.PHONY: FORCE
FORCE:
