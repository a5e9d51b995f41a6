//go:build identity && !race

package e2e

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// glewlwyd does not say whether an email address is verified, and keeps serving a person who was disabled. The person cannot
// sign in again, but only an administrator can cut off the device.
func TestPersonSignsInWithGlewlwyd(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		addr, name := porttest.Addr(t), "laptop"
		p := &providerTest{addr: addr, host: name, network: startNetwork(t, meshtest.Config{Set: map[string]string{
			"oidc.issuer": "http://" + addr + "/api/oidc", "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret, "oidc.scope": "openid",
			"oidc.allowed_groups": "staff", "oidc.allowed_domains": "example.com", "oidc.email_verified_required": "false",
		}}), client: clienttest.Start(t, clienttest.Options{Version: version})}
		g := oidctest.StartGlewlwyd(ctx, t, addr, p.URL+"/oidc/callback")
		p.healthy(ctx, true)
		p.up(ctx, func(link string) {
			ann, err := g.SignIn(ctx)
			if err == nil {
				err = ann.Open(ctx, link)
			}
			if err == nil {
				err = g.Continue(ctx, ann)
			}
			if err != nil || !confirm.MatchString(ann.Text) {
				t.Fatalf("%q, %v: %s", ann.Visited, err, ann.Text)
			}
			ann.Until(ctx, t, approved)
		})
		if n := p.nodes(ctx)[name]; n.User.Name != "ann" {
			t.Errorf("nodes %+v", p.nodes(ctx))
		}
		g.Disable(ctx)
		if _, err := g.SignIn(ctx); err == nil {
			t.Error("a disabled person signs in")
		}
		if n := p.nodes(ctx)[name]; !n.Online {
			t.Errorf("%+v", n)
		}
		p.CLI("users", "suspend", "ann", "--force")
		awaitState(ctx, t, p.client, "NeedsLogin")
	})
}
