//go:build !race

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// Devices that sign in after an import from Tailscale get their former names and addresses, and the imported policy applies to
// them.
func TestDevicesFromTailscaleKeepNamesAndAddresses(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	export := t.TempDir()
	for name, text := range map[string]string{
		"users.json": `{"users": [{"loginName": "ann@example.com", "displayName": "Ann", "role": "admin", "status": "active", "type": "member"}]}`,
		"devices.json": `{"devices": [
			{"name": "desk.tail1234.ts.net", "hostname": "ann-desk", "user": "ann@example.com", "addresses": ["100.101.102.103", "fd7a:115c:a1e0::6567"]},
			{"name": "web-1.tail1234.ts.net", "hostname": "web", "user": "ann@example.com", "addresses": ["100.101.102.104", "fd7a:115c:a1e0::6568"], "tags": ["tag:web"]}]}`,
		"policy.hujson": `{"tagOwners": {"tag:web": ["autogroup:admin"]}, "acls": [{"action": "accept", "users": ["autogroup:admin"], "ports": ["tag:web:*"]}]}`,
	} {
		if err := os.WriteFile(filepath.Join(export, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := n.CLI("import", "tailscale", export, "--apply"); !strings.Contains(out, "--login-server") || !strings.Contains(out, "ann (admin)") {
		t.Errorf("the import prints:\n%s", out)
	}
	web := n.join(ctx, clienttest.Options{Version: clienttest.Newest}, n.CLI("preauthkeys", "create", "--tags", "tag:web"), "web")
	other := n.join(ctx, clienttest.Options{Version: clienttest.Newest}, n.CLI("preauthkeys", "create", "--user", "ann"), "other")
	desk := n.join(ctx, clienttest.Options{Version: clienttest.Oldest}, n.CLI("preauthkeys", "create", "--user", "ann"), "ann-desk")
	for _, c := range []struct {
		d    *clienttest.Daemon
		name string
		addr string
	}{{desk, "desk", "100.101.102.103"}, {web, "web-1", "100.101.102.104"}} {
		if got := address(ctx, t, c.d).String(); got != c.addr {
			t.Errorf("%s has the address %s, want %s", c.name, got, c.addr)
		}
		if _, ok := n.nodes(ctx)[c.name]; !ok {
			t.Errorf("no node has the name %s: %v", c.name, n.nodes(ctx))
		}
	}
	if got := address(ctx, t, other).String(); strings.HasPrefix(got, "100.101.102.10") {
		t.Errorf("another device got the reserved address %s", got)
	}
	if left := n.CLI("reservations", "list"); strings.Contains(left, "100.101.102.") {
		t.Errorf("reservations are left:\n%s", left)
	}
	if s, err := desk.Status(ctx); err != nil || peer(s, "web-1") != nil {
		t.Errorf("the device sees the server before its owner is an administrator: %v", err)
	}
	n.CLI("users", "set-role", "ann", "admin")
	await(ctx, t, desk, seesOnline("web-1"))
	eventually(ctx, t, func() error {
		if out, text, code := desk.CLI(ctx, "ping", "--c=1", "--timeout=10s", "--until-direct=false", "web-1"); code != 0 {
			return fmt.Errorf("tailscale ping: %s%s", out, text)
		}
		return nil
	})
}
