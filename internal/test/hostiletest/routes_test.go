package hostiletest

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/console/bff"
	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// mustHaveRows checks that the routes of the routers and the attacked rows are the same.
func mustHaveRows(t *testing.T, rows []row, routes []string) {
	t.Helper()
	var have []string
	for _, r := range rows {
		have = append(have, r.pattern)
	}
	slices.Sort(have)
	slices.Sort(routes)
	if diff := cmp.Diff(routes, have); diff != "" {
		t.Errorf("add a row to rows_test.go for each route that has none, so that it is attacked too (-routes +rows):\n%s", diff)
	}
}

// TestEveryPublicRouteIsAttacked runs a server and gets its routes from it. An API operation is
// public if it does not respond with 401 to a request without a key.
func TestEveryPublicRouteIsAttacked(t *testing.T) {
	addrs := runServer(t)
	routes := []string{"/", protected}
	for _, pattern := range addrs.Routes {
		if pattern == "/derp" {
			routes = slices.AppendSeq(routes, maps.Keys((&relay.Server{}).Routes()))
			continue
		}
		routes = append(routes, pattern)
	}
	contract, err := apitest.Load(apispec.Document)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for path, item := range contract.Document.Paths.Map() {
		for method := range item.Operations() {
			if status(t, method, "http://"+addrs.API+wildcard.ReplaceAllString(path, "1")) == http.StatusUnauthorized {
				refused++
				continue
			}
			routes = append(routes, method+" "+path)
		}
	}
	if refused == 0 {
		t.Error("no operation needs an API key")
	}
	mustHaveRows(t, publicRows(), routes)
}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

func status(t *testing.T, method, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// runServer runs a server with a relay in this process until the test ends.
func runServer(t *testing.T) app.Addrs {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") // short enough for the path of a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("/dev/null", []string{
		"FAIRLEAD_SERVER_URL=http://127.0.0.1", "FAIRLEAD_LISTEN_ADDR=127.0.0.1:0", "FAIRLEAD_METRICS_LISTEN_ADDR=127.0.0.1:0",
		"FAIRLEAD_UNIX_SOCKET=" + filepath.Join(dir, "sock"), "FAIRLEAD_DATABASE_SQLITE_PATH=" + filepath.Join(dir, "db.sqlite"),
		"FAIRLEAD_NOISE_PRIVATE_KEY_PATH=" + filepath.Join(dir, "noise.key"), "FAIRLEAD_DERP_SERVER_ENABLED=true",
		"FAIRLEAD_DERP_SERVER_PRIVATE_KEY_PATH=" + filepath.Join(dir, "relay.key"), "FAIRLEAD_DERP_SERVER_STUN_LISTEN_ADDR=127.0.0.1:0",
		"FAIRLEAD_OIDC_ISSUER=http://127.0.0.1:1", "FAIRLEAD_OIDC_CLIENT_ID=mesh", // nobody is there, but the routes are
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan app.Addrs, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Config: c, DrainDelay: time.Millisecond, Ready: func(a app.Addrs) { ready <- a }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	select {
	case a := <-ready:
		return a
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return app.Addrs{}
	}
}

// TestEveryMachineRouteIsAttacked compares the rows with the router inside Noise.
func TestEveryMachineRouteIsAttacked(t *testing.T) {
	s := wire.New(wire.Config{Noise: identity.NewNoiseKeys(identity.NoiseKey{Number: 1, Private: key.NewMachine()}), Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	mustHaveRows(t, machineRows(), slices.Collect(maps.Keys(s.MachineRoutes())))
}

// TestEveryConsoleRouteIsAttacked compares the rows with the console's routes. Requests that the
// console routes by prefix have one row for each kind.
func TestEveryConsoleRouteIsAttacked(t *testing.T) {
	s, err := bff.New(bff.Config{CoordinatorURL: "http://127.0.0.1", CookieSecret: strings.Repeat("x1", 16)}, "", fstest.MapFS{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mustHaveRows(t, consoleRows(), slices.AppendSeq([]string{"calls", "pages", "files", "unknown paths"}, maps.Keys(s.Routes())))
}
