package main_test

import (
	"errors"
	"strings"
	"testing"

	"tailscale.com/types/key"
)

func TestEmbeddedRelaysOfReplicasAreOneRegion(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	one := onPostgres(t, pg).with("noise.private_key_path", keys+"/noise.key", "replica_name", "mesh-1",
		"derp.server.enabled", "true", "derp.server.stun_listen_addr", "127.0.0.1:0", "derp.server.private_key_path", keys+"/relay1.key")
	two := one.with("unix_socket", keys+"/other.sock", "replica_name", "mesh-2", "derp.server.private_key_path", keys+"/relay2.key")
	a := serve(t, one)
	b := serve(t, two)
	mustCommand(t, one, "users", "create", "alice")
	alpha, _ := newNode(t, a, "alpha")
	beta, _ := newNode(t, b, "beta")
	at := func(p *process) *relayRun { return &relayRun{process: p, addr: p.api} }
	// talk connects both nodes, and sends a packet from one to the other.
	talk := func(first, second *process) {
		t.Helper()
		x, y := admitted(t, at(first), alpha), admitted(t, at(second), beta)
		exchange(t, x, y, alpha, beta)
		_, _ = x.Close(), y.Close() // so that packets do not go to these connections later
	}
	talk(a, b)
	talk(b, a)
	for _, p := range []*process{a, b} {
		if _, err := relayClient(t, p.api, key.NewNode()); err == nil {
			t.Error("a stranger is admitted")
		}
	}

	offered := func() error {
		if state := b.client("").must(t, 200, "GET", "/api/v1/server", ""); strings.Count(state, `"embedded":true`) != 1 {
			return errors.New("not one embedded relay: " + state)
		}
		return nil
	}
	if err := offered(); err != nil {
		t.Error(err)
	}
	// The replica that added the region dies, and the region stays.
	a.kill(t)
	shows(t, b, 1, "mesh-1 has not reported", "mesh-1 missing", "mesh-2 active")
	if err := offered(); err != nil {
		t.Error(err)
	}
	talk(b, b)
	a = serve(t, one)
	talk(a, b)
	if health := b.client("").must(t, 200, "GET", "/health", ""); strings.Contains(health, "region_id") {
		t.Errorf("a warning about the region: %s", health)
	}
}
