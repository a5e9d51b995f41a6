//go:build !race

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// relays is a map with a relay that nobody needs: there is one client at a time. Replicas cannot share the port of a relay of
// their own.
const relays = `{"Regions": {"900": {"RegionID": 900, "RegionCode": "test", "RegionName": "Test", "Nodes": [{"Name": "900a", "RegionID": 900, "HostName": "127.0.0.1", "DERPPort": 9}]}}}`

// Two replicas are behind a balancer that sends each connection to the next of them. The one that began the sign-in is killed
// while the person is at the provider, and the one that continued it while the person reads the confirmation. The client loses
// its connection too, and still gets the answer.
func TestSignInFinishesOnTheReplicaThatIsLeft(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	pg := startPostgres(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "relays.json"), []byte(relays), 0o600); err != nil {
		t.Fatal(err)
	}
	balancer, dex, addr := meshtest.NewBalancer(t), oidctest.Dex(), porttest.Addr(t)
	dex.Start(ctx, t, addr, balancer.URL+"/oidc/callback")
	config := meshtest.Config{
		Binary: fairlead, Postgres: pg, Database: pg.Database(t), URL: balancer.URL, NoiseKey: filepath.Join(dir, "noise.key"), Set: map[string]string{
			"dns.base_domain": baseDomain, "derp.paths": filepath.Join(dir, "relays.json"), "oidc.issuer": dex.Issuer(addr),
			"oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret, "oidc.scope": dex.Scope,
		},
	}
	first, second := meshtest.Start(t, config), meshtest.Start(t, config)
	balancer.Add(first.Addr)
	forEachVersion(t, func(t *testing.T, version string) {
		client := clienttest.Start(t, clienttest.Options{Version: version})
		name := "laptop-" + strings.ReplaceAll(version, ".", "-")
		at := func(s *meshtest.Server) *providerTest {
			return &providerTest{program: dex, addr: addr, network: network{s, t}, client: client, host: name}
		}
		at(first).healthy(ctx, true)
		first.URL = balancer.URL
		at(first).up(ctx, func(link string) {
			ann := dex.Visitor(t, "ann")
			ann.PauseAt = balancer.URL + "/oidc/callback"
			if err := ann.Open(ctx, link); err != nil {
				t.Fatal(err)
			}
			if err := ann.Submit(ctx); err != nil || !strings.HasPrefix(ann.At.String(), ann.PauseAt) {
				t.Fatalf("%q, %v: %s", ann.Visited, err, ann.Text)
			}
			balancer.Add(second.Addr)
			at(second).healthy(ctx, true)
			first.Kill()
			ann.PauseAt = ""
			if err := ann.Open(ctx, ann.At.String()); err != nil || !confirm.MatchString(ann.Text) {
				t.Fatalf("%q, %v: %s", ann.Visited, err, ann.Text)
			}
			first.Resume()
			second.Kill()
			ann.Until(ctx, t, approved)
		})
		if n, ok := at(first).nodes(ctx)[name]; !ok || n.User.Name != "ann" {
			t.Errorf("nodes %+v", at(first).nodes(ctx))
		}
		second.Resume()
		balancer.Remove(second.Addr) // the next sign-in begins on the first again
	})
}
