package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

var pg *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s }))
}

const patience = 20 * time.Second

// settings returns a complete configuration in the form of environment variables.
func settings(t *testing.T, more ...string) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") // short enough for a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return append([]string{
		"FAIRLEAD_SERVER_URL=http://127.0.0.1", "FAIRLEAD_LISTEN_ADDR=127.0.0.1:0", "FAIRLEAD_METRICS_LISTEN_ADDR=127.0.0.1:0",
		"FAIRLEAD_UNIX_SOCKET=" + filepath.Join(dir, "sock"), "FAIRLEAD_DATABASE_SQLITE_PATH=" + filepath.Join(dir, "db.sqlite"),
		"FAIRLEAD_NOISE_PRIVATE_KEY_PATH=" + filepath.Join(filepath.Dir(t.TempDir()), "noise.key"), // the same for all replicas of a test
		"FAIRLEAD_DERP_SERVER_ENABLED=false", // only one server per machine can bind its STUN port
	}, more...)
}

func postgres(name string) []string {
	return []string{
		"FAIRLEAD_DATABASE_TYPE=postgres", "FAIRLEAD_DATABASE_POSTGRES_HOST=" + pg.Host, fmt.Sprintf("FAIRLEAD_DATABASE_POSTGRES_PORT=%d", pg.Port),
		"FAIRLEAD_DATABASE_POSTGRES_NAME=" + name, "FAIRLEAD_DATABASE_POSTGRES_USER=" + pg.User, "FAIRLEAD_DATABASE_POSTGRES_SSL=disable",
	}
}

// service is a server that runs in this process.
type service struct {
	app.Addrs
	log    *waittest.Transcript
	cancel context.CancelFunc
	ended  chan error
}

func run(t *testing.T, env []string) *service {
	t.Helper()
	c, err := config.Load("/dev/null", env)
	if err != nil {
		t.Fatal(err)
	}
	return runConfig(t, c)
}

// runConfig runs a server with settings that a configuration file could not contain.
func runConfig(t *testing.T, c *config.Config) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, ready := &service{log: &waittest.Transcript{}, cancel: cancel, ended: make(chan error, 1)}, make(chan app.Addrs, 1)
	go func() {
		s.ended <- app.Run(ctx, app.Options{
			Config: c, Log: s.log, DrainDelay: time.Millisecond, Build: app.Build{Version: "1.2.3"}, Ready: func(a app.Addrs) { ready <- a },
		})
	}()
	t.Cleanup(cancel)
	select {
	case s.Addrs = <-ready:
	case err := <-s.ended:
		t.Fatal(err)
	}
	return s
}

func (s *service) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

// fetch sends a GET request to one of the listeners.
func fetch(t *testing.T, network, address, path string) (int, string) {
	t.Helper()
	return send(t, network, address, http.MethodGet, path, "")
}

// send sends a request over a new connection.
func send(t *testing.T, network, address, method, path, body string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://fairlead"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// eventually polls until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, patience, 10*time.Millisecond, try)
}

func TestRunLeavesNothingBehind(t *testing.T) {
	for _, engine := range []struct {
		name string
		env  []string
	}{{"sqlite", nil}, {"postgres", postgres(pg.Database(t))}} {
		t.Run(engine.name, func(t *testing.T) {
			env := settings(t, engine.env...)
			before := runtime.NumGoroutine()
			for range 2 { // the second run in a process must not find anything left over from the first
				s := run(t, env)
				for network, address := range map[string]string{"tcp": s.API, "unix": s.Socket} {
					if status, body := fetch(t, network, address, "/health"); status != 200 || !strings.HasSuffix(body, `"status":"pass"}`) {
						t.Errorf("health over %s: %d %s", network, status, body)
					}
				}
				s.stop(t)
				eventually(t, func() error {
					if now := runtime.NumGoroutine(); now > before {
						stacks := make([]byte, 1<<20)
						return fmt.Errorf("%d goroutines, before it were %d:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
					}
					return nil
				})
			}
		})
	}
}

func TestRelayIsOnByDefault(t *testing.T) {
	on := run(t, settings(t, "FAIRLEAD_DERP_SERVER_ENABLED=", "FAIRLEAD_DERP_SERVER_STUN_LISTEN_ADDR=127.0.0.1:0"))
	off := run(t, settings(t))
	for _, c := range []struct {
		s    *service
		want int
	}{{on, http.StatusUpgradeRequired}, {off, http.StatusNotFound}} {
		if status, body := fetch(t, "tcp", c.s.API, "/derp"); status != c.want {
			t.Errorf("/derp: status %d, want %d: %s", status, c.want, body)
		}
	}
	eventually(t, func() error {
		if _, body := fetch(t, "tcp", on.API, "/health"); strings.Contains(body, "relay") {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	off.warns(t, "relay", "no relay configured")
}

func TestFailedStartLeavesNothingBehind(t *testing.T) {
	env := settings(t, "FAIRLEAD_TLS_CERT_PATH=/nowhere.pem", "FAIRLEAD_TLS_KEY_PATH=/nowhere.pem")
	c, err := config.Load("/dev/null", env)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 2 {
		err := app.Run(t.Context(), app.Options{Config: c})
		if err == nil || !strings.HasPrefix(err.Error(), "cannot load certificate: ") {
			t.Fatalf("got %v", err)
		}
	}
	eventually(t, func() error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines, before it were %d", now, before)
		}
		return nil
	})
}

// Two replicas run in one process, which also shows that they share no global state.
// They warn about a difference that would confuse clients, but stay healthy.
func TestReplicasWarnOfAnotherConfiguration(t *testing.T) {
	name := pg.Database(t)
	first := run(t, settings(t, postgres(name)...))
	second := run(t, settings(t, append(postgres(name), "FAIRLEAD_PREFIXES_V4=100.64.1.0/24")...))
	first.warns(t, "replicas", "has a different configuration")
	second.warns(t, "replicas", "has a different configuration")
	second.stop(t)
	first.stop(t)
}

// warns waits until the server is healthy and has one warning from this check.
func (s *service) warns(t *testing.T, part, text string) {
	t.Helper()
	eventually(t, func() error {
		var health struct {
			Status string
			Checks map[string][]struct{ Status, Output string }
		}
		status, body := fetch(t, "tcp", s.API, "/health")
		if err := json.Unmarshal([]byte(body), &health); err != nil {
			return err
		}
		warnings := health.Checks[part]
		if status != 200 || health.Status != "pass" || len(warnings) != 1 || warnings[0].Status != "warn" || !strings.Contains(warnings[0].Output, text) {
			return fmt.Errorf("got %d %s, want one warning", status, body)
		}
		return nil
	})
}

func TestUnsafeSettingsOfTheDatabaseAreAWarning(t *testing.T) {
	name := pg.Database(t)
	pg.Exec(t, "postgres", "ALTER DATABASE "+name+" SET synchronous_commit = off")
	s := run(t, settings(t, postgres(name)...))
	s.warns(t, "database", "synchronous_commit is off")
	if n := strings.Count(s.log.String(), "unsafe PostgreSQL setting"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	s.stop(t)
}

func TestReplicaWhoseRelayRegionIsTakenServesAndWarns(t *testing.T) {
	name := pg.Database(t)
	start := func(ipv4 string) *service {
		return run(t, settings(t, append(postgres(name), "FAIRLEAD_DERP_SERVER_ENABLED=true", "FAIRLEAD_DERP_SERVER_IPV4="+ipv4, "FAIRLEAD_DERP_SERVER_STUN_LISTEN_ADDR=127.0.0.1:0",
			"FAIRLEAD_DERP_SERVER_PRIVATE_KEY_PATH="+filepath.Join(t.TempDir(), "relay.key"))...))
	}
	first := start("192.0.2.1")
	eventually(t, func() error {
		if _, body := fetch(t, "tcp", first.API, "/health"); strings.Contains(body, "relay") {
			return fmt.Errorf("not published yet: %s", body)
		}
		return nil
	})
	second := start("192.0.2.2")
	// No warning yet: the region may be held by this server's own process from before a restart.
	if _, body := fetch(t, "tcp", second.API, "/health"); strings.Contains(body, "relay") {
		t.Errorf("warns at once: %s", body)
	}
	second.warns(t, "relay", "or each its own derp.server.region_id")
	second.stop(t)
	first.stop(t)
}

func TestVersionTellsTheBuild(t *testing.T) {
	s := run(t, settings(t))
	var got map[string]any
	if _, body := fetch(t, "tcp", s.API, "/version"); json.Unmarshal([]byte(body), &got) != nil {
		t.Fatal(body)
	}
	want := map[string]any{"version": "0.28.0", "product": "Fairlead", "productVersion": "1.2.3", "serverUrl": "http://127.0.0.1"}
	for key := range got {
		if _, ok := want[key]; !ok {
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.stop(t)
}
