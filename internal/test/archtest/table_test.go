package archtest

import "regexp"

// row holds what a package may import: packages of this module, and guarded external packages. "*" means all
// of them.
type row struct{ ours, guarded string }

// table is the import table. Packages are given by their path below internal/, or by "./" and their path if
// they are elsewhere. Every package needs a row, but a row may exist before its package. Test files are not
// checked.
var table = map[string]row{
	"mesh":                {"", "keys names"},
	"mesh/meshgen":        {"mesh", "keys names"},
	"policy":              {"mesh policy/bitset policy/lang", ""},
	"policy/lang":         {"mesh spelling", ""},
	"policy/explain":      {"mesh policy policy/bitset policy/lang", ""},
	"policy/bitset":       {"", ""},
	"netmap":              {"mesh policy policy/lang", "keys zstd"},
	"history":             {"mesh", ""},
	"store":               {"mesh history", "keys"},
	"store/storetest":     {"mesh mesh/meshgen store history", "keys testing"},
	"sqlstore":            {"mesh store history", "keys sql slog prometheus"},
	"ledger":              {"mesh policy policy/lang store history periodic", "slog prometheus"},
	"identity":            {"mesh", "keys http slog"},
	"guard":               {"identity", "http slog prometheus"},
	"control":             {"mesh policy policy/lang policy/explain history ledger identity textdiff periodic", "keys slog prometheus"},
	"presence":            {"mesh policy ledger", "slog prometheus"},
	"sweep":               {"mesh policy ledger", "slog prometheus"},
	"probe":               {"mesh policy ledger periodic", "keys slog prometheus"},
	"secrets":             {"mesh policy ledger identity", "keys slog"},
	"stream":              {"mesh policy netmap ledger", "keys http slog prometheus"},
	"oidc":                {"", "http slog"},
	"passkey":             {"", ""},
	"passkey/passkeytest": {"", ""},
	"h2":                  {"", "http slog"},
	"wire":                {"h2 mesh netmap ledger control identity guard stream periodic oidc passkey", "keys tailcfg tailscale http slog prometheus"},
	"scim":                {"mesh ledger control", "http slog"},
	"api":                 {"mesh policy policy/lang policy/explain history ledger cluster control identity guard api/openapi apidocs scim ./api", "keys http slog prometheus"},
	"api/openapi":         {"./apiclient", "http"},
	"apidocs":             {"", ""},
	"fence":               {"ledger identity periodic", "http slog prometheus"},
	"balance":             {"ledger", "slog"},
	"cluster":             {"ledger periodic", "slog"},
	"recheck":             {"mesh control oidc periodic", "slog prometheus"},
	"webhook":             {"mesh policy history ledger control", "http slog prometheus"},
	"relay":               {"identity guard", "keys tailcfg tailscale http slog prometheus"},
	"relayd":              {"relay", "keys http slog"},
	"relaylink":           {"relay mesh policy ledger control guard periodic", "keys http slog prometheus"},
	"backup":              {"mesh store sqlstore", "slog"},
	"config":              {"mesh spelling", "slog"},
	"headscale":           {"mesh identity", "keys names"},
	"shadow":              {"", ""},
	"spelling":            {"", ""},
	"textdiff":            {"", ""},
	"periodic":            {"", ""},
	"acme":                {"", "http"},
	"app": {
		"acme mesh policy history store sqlstore ledger identity guard control presence sweep probe secrets stream wire api api/openapi ./api cluster fence balance webhook relay relayd relaylink config periodic oidc passkey recheck headscale netmap shadow",
		"keys http slog prometheus",
	},

	"./api":                  {"", ""},
	"./api/gen":              {"mesh", ""},
	"./apiclient":            {"", "http"},
	"./cmd/fairlead":         {"app config headscale ./cmd/fairlead/cli", "slog"},
	"./cmd/fairlead/cli":     {"config policy/lang policy/explain backup spelling textdiff ./apiclient ./deploy", "http"},
	"./cmd/fairlead-console": {"./console/bff ./console/web", ""},
	"./console/bff":          {"./apiclient", "http slog"},
	"./console/web":          {"", ""},

	"./docs/examples/webhook-receiver": {"", "http"},

	"test/deploytest/upstream":     {"", "http"},
	"test/deploytest/composecheck": {"", ""}, // a separate module

	"./deploy":                    {"", ""},
	"./deploy/helm/charttest":     {"", ""}, // a separate module
	"./deploy/package/image":      {"", ""},
	"./deploy/package/provenance": {"", ""},
	"./deploy/package/sbom":       {"", ""},

	"./bench/load":      {"", ""},
	"./bench/meshbench": {"", "keys tailcfg tailscale zstd http"},

	"test/archtest":      {"", ""},
	"test/apitest":       {"", "http testing"},
	"test/chaos":         {"mesh", ""},
	"test/movetest":      {"", ""},
	"test/chaos/replica": {"mesh mesh/meshgen policy store history sqlstore ledger identity control test/chaos", "slog prometheus"},
	"test/meshtest":      {"*", "*"},
	"test/oidctest":      {"test/pgtest test/waittest", "http testing"},
	"test/pgtest":        {"test/porttest", "sql testing"},
	"test/monitortest":   {"", ""},
	"test/speccheck":     {"", ""},
	"test/doccheck":      {"", ""},

	"test/doccheck/textsample": {"test/doccheck", ""},

	"test/clienttest":   {"", "tailscale testing"},
	"test/consoletest":  {"", ""},
	"test/disktest":     {"", "testing"},
	"test/porttest":     {"", "testing"},
	"test/deploytest":   {"test/doccheck", ""},
	"test/e2e":          {"", ""},
	"test/hostiletest":  {"", ""},
	"test/packagetest":  {"test/doccheck", ""},
	"test/sitecheck":    {"", ""},
	"test/waittest":     {"", "testing"},
	"policy/policytest": {"", "testing"},
}

// guards lists the external packages that only some rows may import, by prefix; the longest prefix applies.
var guards = map[string]string{
	"database/sql":               "sql",
	"github.com/jackc/pgx":       "sql",
	"github.com/pressly/goose":   "sql",
	"modernc.org/sqlite":         "sql",
	"net/http":                   "http",
	"log":                        "slog",
	"github.com/prometheus":      "prometheus",
	"tailscale.com":              "tailscale",
	"tailscale.com/tailcfg":      "tailcfg",
	"tailscale.com/types/key":    "keys",
	"tailscale.com/util/dnsname": "names",
	"testing":                    "testing",

	"tailscale.com/util/zstdframe": "zstd",
}

// pure packages use no clock, no randomness and no environment.
var pure = map[string]bool{"mesh": true, "policy": true, "policy/bitset": true, "policy/lang": true, "policy/explain": true, "netmap": true}

// goFiles lists the files that may start goroutines with a go statement, each with the reason.
var goFiles = map[string]string{
	"internal/test/pgtest/pgtest.go":      "waits for the child process",
	"internal/test/chaos/replica/main.go": "reads standard input, which nobody can interrupt",
}

// variables lists the package-level variables that are neither an error, an
// embedded file, a regular expression nor a compile-time check.
var variables = map[string]string{
	"cmd/fairlead/main.go version":   "stamped by the linker",
	"cmd/fairlead/main.go commit":    "stamped by the linker",
	"cmd/fairlead/main.go buildTime": "stamped by the linker",

	"cmd/fairlead-console/main.go version": "stamped by the linker",

	"internal/ledger/ledger.go ErrTooOld":         "the store's error, for callers who may not know the store",
	"internal/ledger/ledger.go ErrUnavailable":    "the store's error, for callers who may not know the store",
	"internal/ledger/ledger.go ErrUnknownOutcome": "the store's error, for callers who may not know the store",
}

var (
	impure       = regexp.MustCompile(`^(rand\.|os\.|time\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)$)`)
	constantCall = regexp.MustCompile(`^(errors\.New|fmt\.Errorf|regexp\.MustCompile)$`)
	embedLine    = regexp.MustCompile(`^//go:embed `)
	longLine     = regexp.MustCompile(`^// ?long: ?\S`)
)

const (
	module       = "github.com/fairlead-mesh/fairlead"
	maxFileLines = 600
	maxFuncLines = 80
)
