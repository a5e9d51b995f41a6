package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A network moves from Tailscale: users, policy, DNS settings, and names and addresses that devices claim.
func TestImportFromTailscale(t *testing.T) {
	s := onSQLite(t).with("dns.base_domain", "mesh.example.net")
	p := serve(t, s)
	const export = "testdata/tailscale"
	says(t, mustCommand(t, s, "import", "tailscale", export, "--check"), "3 users, 4 devices", "device shared.tail9.ts.net: shared by another tailnet",
		"user former@example.com: suspended", "alice (owner): assign a role", "laptop               tailscale login --login-server", "--auth-key <key for tag:prod,tag:web>", "Ready to import with --apply")
	if list := mustCommand(t, s, "users", "list"); strings.Contains(list, "alice") {
		t.Fatalf("the check created users:\n%s", list)
	}
	says(t, mustCommand(t, s, "import", "tailscale", export, "--apply"), "Imported: 7 objects created")
	says(t, mustCommand(t, s, "users", "list"), "alice ", "alice@example.com", "bob@github", "alice@other.example")
	says(t, mustCommand(t, s, "policy", "get"), "// The policy of the tailnet.")
	says(t, mustCommand(t, s, "dns", "show"), "9.9.9.9", "corp.example.com: 10.1.0.53")
	says(t, mustCommand(t, s, "reservations", "list"), "desk ", "DESKTOP-4F2K", "100.101.102.105", "tag:prod,tag:web")

	// It can be repeated, and a device that has joined since is not reserved again.
	join := func(hostname, name, ipv4 string, key ...string) {
		t.Helper()
		keyed := strings.TrimSpace(mustCommand(t, s, append([]string{"preauthkeys", "create"}, key...)...))
		line := fmt.Sprintf("nodes enrol %s --auth-key %s --machine-key %s --node-key %s --output json", hostname, keyed, hexKey("mkey:", hostname), hexKey("nodekey:", hostname))
		out := mustCommand(t, s, strings.Fields(line)...)
		var node struct {
			GivenName   string
			IPAddresses []string
		}
		if err := json.Unmarshal([]byte(out), &node); err != nil || node.GivenName != name || (node.IPAddresses[0] == ipv4) != (ipv4 != "") {
			t.Errorf("%s joined as %s (%v)", hostname, out, err)
		}
	}
	join("laptop", "laptop", "100.101.102.103", "--user", "alice")
	join("DESKTOP-4F2K", "desktop-4f2k", "", "--user", "bob@github") // of another user
	join("web-1", "web-1", "100.101.102.105", "--tags", "tag:web,tag:prod")
	says(t, mustCommand(t, s, "import", "tailscale", export, "--apply"), "Imported: 0 objects created")
	if list := mustCommand(t, s, "reservations", "list"); strings.Contains(list, "laptop") || !strings.Contains(list, "desk ") {
		t.Errorf("reservations after two devices joined:\n%s", list)
	}
	p.stop(t)
}

// hexKey returns a public key that is different for each name.
func hexKey(prefix, name string) string {
	const digits = "0123456789abcdef"
	var text strings.Builder
	for i := range 64 {
		text.WriteByte(digits[(int(name[i%len(name)])*(i+3)+len(prefix))%16])
	}
	return prefix + text.String()
}

func TestImportFromTailscaleSaysWhatIsWrong(t *testing.T) {
	s := onSQLite(t)
	serve(t, s)
	dir := t.TempDir()
	if r := command(t, s, "import", "tailscale", dir, "--check"); r.status != 1 || !strings.Contains(r.stderr, "devices.json") {
		t.Errorf("without devices: %+v", r)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("devices.json", `{"message": "not authorized"`)
	if r := command(t, s, "import", "tailscale", dir, "--check"); r.status != 1 || !strings.Contains(r.stderr, "devices.json") {
		t.Errorf("with a file that is not JSON: %+v", r)
	}
	// Without a list of users, the owners of the devices are imported. An address outside the prefixes is reported.
	write("devices.json", `{"devices": [{"name": "a.ts.net", "hostname": "a", "user": "carol@example.com", "addresses": ["10.0.0.1"]}]}`)
	write("policy.hujson", `{"acls": [{"action": "accept", "src": ["*"], "dst": ["autogroup:nonsense:*"]}]}`)
	says(t, mustCommand(t, s, "import", "tailscale", dir, "--check"), "1 user, 1 device", "policy.hujson:1:")
	says(t, mustCommand(t, s, "import", "tailscale", dir, "--apply"), "device a: ", "10.0.0.1", "the policy was not saved", "Imported: 1 object created")
	if r := command(t, s, "import", "tailscale", dir); r.status != 2 {
		t.Errorf("with neither --check nor --apply: %+v", r)
	}
}
