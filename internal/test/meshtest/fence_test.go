//go:build !race

package meshtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One replica loses the database while the other keeps it. The first must soon refuse keys that are
// revoked on the second, and its nodes must move before they are shown as offline to anyone.
func TestReplicaThatLosesTheDatabaseHandsItsNodesOverAndRefusesWhatOthersRevoked(t *testing.T) {
	t.Parallel()
	const nodes, handedOver = 20, patience // the handover takes about 12 s
	way := NewBalancer(t, fmt.Sprintf("%s:%d", pg.Host, pg.Port))
	_, port, err := net.SplitHostPort(way.Addr)
	if err != nil {
		t.Fatal(err)
	}
	mesh := NewBalancer(t)
	config := Config{Binary: fairlead, Postgres: pg, Database: pg.Database(t), URL: mesh.URL, NoiseKey: filepath.Join(t.TempDir(), "noise.key")}
	other := Start(t, config)
	config.Set = map[string]string{"database.postgres.port": port}
	cut := Start(t, config)
	for _, s := range []*Server{other, cut} {
		mesh.Add(s.Addr)
	}
	mesh.Check(t, "/ready")
	other.CLI("users", "create", "alice")
	preAuthKey := other.PreAuthKey("alice", "--reusable")
	all := join(t, NewCrowd(t, mesh.URL), preAuthKey, nodes)
	gone := NewCrowd(t, cut.URL).Node("gone")
	if err := gone.Register(t.Context(), preAuthKey); err != nil {
		t.Fatal(err)
	}
	key := other.APIKey()
	eventually(t, patience, func() error { return wantStatus(t, cut, "/api/v1/user", key, http.StatusOK) })

	way.Freeze()
	began := time.Now()
	other.CLI("nodes", "delete", "gone", "--force")
	other.CLI("apikeys", "expire", key)
	eventually(t, handedOver, func() error { return wantStatus(t, cut, "/api/v1/user", key, http.StatusServiceUnavailable) })
	t.Logf("the API key is refused after %v", time.Since(began).Round(time.Millisecond))
	if err := wantStatus(t, cut, "/ready", "", http.StatusServiceUnavailable); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := gone.crowd.dial(ctx, gone.machine); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("the deleted node is not refused: %v", err)
	}
	mustHold(t, handedOver, nodes, other)
	mustHold(t, handedOver, 0, cut)
	t.Logf("all nodes are at the other replica after %v", time.Since(began).Round(time.Millisecond))
	if fenced, err := cut.Metric(t.Context(), "mesh_replica_fenced"); err != nil || fenced != 1 {
		t.Errorf("mesh_replica_fenced is %v, %v", fenced, err)
	}
	cut.CLI("nodes", "list") // people on the machine itself can still read
	mustFlow(t, all[:5], 1)
	t.Logf("nobody was shown offline for longer than %v", watch(t, 0, absence, all))

	way.Thaw()
	eventually(t, patience, func() error { return wantStatus(t, cut, "/ready", "", http.StatusOK) })
	if err := wantStatus(t, cut, "/api/v1/user", key, http.StatusUnauthorized); err != nil {
		t.Errorf("it opened before it had heard of the revocation: %v", err)
	}
	mustFlow(t, all[:5], 2)
	mustAgree(t, other, cut)
}

// wantStatus checks the status of a request to a server, with an API key if one is given.
func wantStatus(t *testing.T, s *Server, path, key string, want int) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != want {
		return fmt.Errorf("%s: %s: %s", path, res.Status, body)
	}
	return nil
}
