package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/net/stun"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// These tests check that configuration keys are not just parsed, but take effect.

// load returns the configuration from environment variables. The test may then change it.
func load(t *testing.T, more ...string) *config.Config {
	t.Helper()
	c, err := config.Load("/dev/null", settings(t, more...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestListenersAreWhereTheConfigurationSays(t *testing.T) {
	public, metrics := porttest.Addr(t), porttest.Addr(t)
	run(t, settings(t, "FAIRLEAD_LISTEN_ADDR="+public, "FAIRLEAD_METRICS_LISTEN_ADDR="+metrics))
	for _, c := range []struct {
		address, path string
		status        int
		says          string
	}{
		{public, "/health", 200, `"status":"pass"`},
		{metrics, "/metrics", 200, "mesh_nodes_total"},
		{public, "/metrics", 404, ""},
		{metrics, "/api/v1/user", 404, ""},
	} {
		if status, body := fetch(t, "tcp", c.address, c.path); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s%s: %d %.200s", c.address, c.path, status, body)
		}
	}
}

// relayOf is a relay as returned by GET /api/v1/server.
type relayOf struct {
	Region struct {
		ID   int
		Code string
	}
	Embedded bool
}

func relays(t *testing.T, s *service) []relayOf {
	t.Helper()
	status, body := fetch(t, "unix", s.Socket, "/api/v1/server")
	var state struct{ Relays []relayOf }
	if err := json.Unmarshal([]byte(body), &state); err != nil || status != 200 {
		t.Fatalf("%d (%v): %s", status, err, body)
	}
	return state.Relays
}

func relayNamed(id int, code string, embedded bool) (r relayOf) {
	r.Region.ID, r.Region.Code, r.Embedded = id, code, embedded
	return r
}

func TestEmbeddedRelayIsWhatTheConfigurationSays(t *testing.T) {
	at := porttest.Addr(t)
	described := []string{"FAIRLEAD_DERP_SERVER_REGION_ID=905", "FAIRLEAD_DERP_SERVER_REGION_CODE=attic", "FAIRLEAD_DERP_SERVER_STUN_LISTEN_ADDR=" + at, "FAIRLEAD_DERP_SERVER_PRIVATE_KEY_PATH=" + t.TempDir() + "/relay.key"}

	off := run(t, settings(t, append(described, "FAIRLEAD_DERP_SERVER_ENABLED=false")...))
	if got := relays(t, off); len(got) > 0 {
		t.Errorf("there are relays: %v", got)
	}
	if _, body := fetch(t, "tcp", off.API, "/health"); !strings.Contains(body, "no relay configured") {
		t.Errorf("/health does not warn that no relay configured: %s", body)
	}
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", at)
	if err != nil {
		t.Fatalf("something listens for STUN: %v", err)
	}
	conn.Close()
	off.stop(t)

	on := run(t, settings(t, append(described, "FAIRLEAD_DERP_SERVER_ENABLED=true")...))
	eventually(t, func() error {
		if diff := cmp.Diff([]relayOf{relayNamed(905, "attic", true)}, relays(t, on)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	asker, err := (&net.Dialer{}).DialContext(t.Context(), "udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	id, answer := stun.NewTxID(), make([]byte, 1500)
	if _, err := asker.Write(stun.Request(id)); err != nil {
		t.Fatal(err)
	}
	_ = asker.SetReadDeadline(time.Now().Add(patience))
	n, err := asker.Read(answer)
	if err != nil {
		t.Fatalf("STUN: %v", err)
	}
	if got, _, err := stun.ParseResponse(answer[:n]); err != nil || got != id {
		t.Errorf("STUN: %v", err)
	}
}

func TestRelayMapIsDownloadedAgainOnlyWithAutoUpdate(t *testing.T) {
	const again = 5
	start := func(autoUpdate bool) (*service, *atomic.Int32) {
		var asked atomic.Int32
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			fmt.Fprint(w, `{"Regions":{"7":{"RegionID":7,"RegionCode":"far","RegionName":"Far","Nodes":[{"Name":"7a","RegionID":7,"HostName":"relay.example"}]}}}`)
		}))
		t.Cleanup(source.Close)
		c := load(t, "FAIRLEAD_DERP_URLS="+source.URL, fmt.Sprintf("FAIRLEAD_DERP_AUTO_UPDATE_ENABLED=%t", autoUpdate))
		c.DERP.UpdateFrequency = 20 * time.Millisecond // configuration files allow a minute or more
		return runConfig(t, c), &asked
	}
	once, askedOnce := start(false)
	often, askedOften := start(true)
	for _, s := range []*service{once, often} {
		eventually(t, func() error {
			if diff := cmp.Diff([]relayOf{relayNamed(7, "far", false)}, relays(t, s)); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	eventually(t, func() error {
		if n := askedOften.Load(); n < again {
			return fmt.Errorf("it was downloaded %d times", n)
		}
		return nil
	})
	if n := askedOnce.Load(); n != 1 {
		t.Errorf("without auto update it was downloaded %d times", n)
	}
}

func TestNodesAreCheckedAsOftenAsTheConfigurationSays(t *testing.T) {
	start := func(interval time.Duration) *service {
		c := load(t)
		c.NodeUpdateCheckInterval, c.Node.Ephemeral.InactivityTimeout = interval, time.Millisecond
		s := runConfig(t, c)
		body := call(t, s, "/api/v1/user", `{"name": "alice"}`)
		user := body["user"].(map[string]any)["id"]
		key := call(t, s, "/api/v1/preauthkey", fmt.Sprintf(`{"user": %q, "ephemeral": true}`, user))["preAuthKey"].(map[string]any)["key"]
		call(t, s, "/api/v1/machine", fmt.Sprintf(`{"preAuthKey": %q, "machineKey": "mkey:%064d", "nodeKey": "nodekey:%064d", "hostname": "web"}`, key, 1, 2))
		return s
	}
	nodes := func(s *service) int {
		_, body := fetch(t, "unix", s.Socket, "/api/v1/node")
		return strings.Count(body, `"machineKey"`)
	}
	seldom, often := start(time.Hour), start(50*time.Millisecond)
	eventually(t, func() error {
		if n := nodes(often); n > 0 {
			return errors.New("the ephemeral node is still there")
		}
		return nil
	})
	if n := nodes(seldom); n != 1 {
		t.Errorf("%d nodes where they are checked every hour", n)
	}
}

// call sends a POST request over the local socket.
func call(t *testing.T, s *service, path, body string) (answer map[string]any) {
	t.Helper()
	status, text := send(t, "unix", s.Socket, http.MethodPost, path, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 {
		t.Fatalf("%s: %d (%v) %s", path, status, err, text)
	}
	return answer
}

func TestRecordsFileIsServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"name": "wiki.example.org", "type": "A", "value": "100.64.0.7"}]`)
	s := run(t, settings(t, "FAIRLEAD_DNS_EXTRA_RECORDS_PATH="+file, "FAIRLEAD_DNS_OVERRIDE_LOCAL_DNS=false"))
	await := func(address, path, want string) {
		t.Helper()
		eventually(t, func() error {
			if _, body := fetch(t, "unix", address, path); !strings.Contains(body, want) {
				return fmt.Errorf("no %s in %s", want, body)
			}
			return nil
		})
	}
	await(s.Socket, "/api/v1/dns", `"fileRecords":[{"name":"wiki.example.org","type":"A","value":"100.64.0.7"}]`)
	await(s.Socket, "/api/v1/dns", `"overrideLocalDNS":false`)
	write(`[{"name": "wiki.exa`)
	await(s.Socket, "/health", "not loaded; the previous records stay active")
	await(s.Socket, "/api/v1/dns", `"name":"wiki.example.org"`)
	write("[]")
	await(s.Socket, "/api/v1/dns", `"fileRecords":[]`)
}
