package cli

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestEveryCommandPrintsTableJSONAndYAML(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	for file, commands := range map[string][]string{
		"users.txt": {
			"users list", "users show alice", "users create alice", "users rename 1 alice", "users set-role alice operator", "users approve alice", "users delete alice --force", "users delete alice alice --force",
			"users link alice https://id.example.com/realms/company/7c1e4b2a", "users unlink alice",
		},
		"preauthkeys.txt": {
			"preauthkeys list", "preauthkeys create --user alice --reusable --tags tag:server",
			"preauthkeys expire --key 12", "preauthkeys delete --key 12 --force", "preauthkeys delete 1 flp_0000aaaaZZZZ_*** --force",
		},
		"sessions.txt": {"sessions list", "sessions list --mine -o json", "sessions revoke 1"},
		"apikeys.txt": {
			"apikeys list", "apikeys create", "apikeys expire --prefix 7Qd0 --force", "apikeys delete --key 1 --force",
		},
		"nodes.txt": {
			"nodes list", "nodes show web-1", "nodes rename 2 web-1", "nodes rename web-1 --reset", "nodes tag web-1 --tags tag:server,tag:web", "nodes move web-1 --user alice",
			"nodes address web-1 --ipv4 100.64.0.1", "nodes note web-1", "nodes note web-1 rack-7", "nodes approve web-1", "nodes approve web-1 --withdraw", "nodes approve alices-laptop 2", "nodes approve --user alice --withdraw --force", "nodes expire alices-laptop 2", "nodes expire --all-offline --force", "nodes expire web-1 --never",
			"nodes expire --identifier 2 --at 30d", "nodes presence", "nodes presence web-1",
			"nodes enrol web-1 --auth-key flp_x --machine-key mkey:01 --node-key nodekey:02", "nodes expire web-1 --at 2026-01-01T00:00:00Z", "nodes delete --identifier 2 --force",
			"nodes delete --tag tag:web --force", "nodes expire --user alice --force", "nodes expire --all --never --force", "nodes expire --tag tag:web --at 30d --force", "nodes tag --tag tag:web --add tag:blue --force", "nodes tag web-1 web-1 --remove tag:blue", "nodes approve-routes --tag tag:web --all",
		},
		"routes.txt": {
			"routes list", "routes enable --route-id 7", "routes disable 7", "routes prefer 7 --preference 10", "routes delete 7 --force", "routes history 7",
			"nodes approve-routes web-1 --routes 192.168.7.0/24,10.1.0.0/16",
		},
		"dns.txt": {
			"dns show", "dns set --magic-dns --nameservers 9.9.9.9", "dns record add printer.example.com 192.168.7.10", "dns record remove Printer.example.com.",
			"dns record remove grafana.mesh.example.com fd7a:115c:a1e0:0::7", "dns record remove no.example.com 10.0.0.1", "dns split set corp.example.com 10.1.0.53 10.2.0.53", "dns split set lab.example.com --records-only",
			"dns split remove lab.example.com", "dns split remove no.example.com", "dns reset --force",
		},
		"auth.txt": {
			"auth list", "auth approve 7K3M-9QXD --user alice", "auth approve https://mesh.example.com/auth/x --user alice", "auth reject 7K3M-9QXD --reason no",
		},
		"policy.txt": {
			"policy get", "policy get --version 6", "policy set testdata/policy.hujson", "policy set testdata/policy.hujson --confirm-within 5m --if-version 6",
			"policy confirm", "policy revert", "policy history", "policy diff 6 7", "policy rollback 6", "policy check testdata/policy.hujson",
			"policy preview testdata/policy.hujson --viewer alice", "policy why alice db-1:5432", "policy why alice db-1", "policy why tag:ci db-1", "policy why alice 10.1.2.3:443", "policy why alice db-1 --policy testdata/policy.hujson",
			"policy access", "policy access --policy testdata/policy.hujson", "policy access --from bob", "policy test",
		},
		"ssh.txt":    {"ssh list", "ssh approve 7K3M-9QXD", "ssh reject 7K3M-9QXD --reason no"},
		"audit.txt":  {"audit list"},
		"events.txt": {"events"},
		"webhooks.txt": {
			"webhooks list", "webhooks show 2", "webhooks create https://receiver.example.com/mesh --events node.*,policyUpdate --description chat",
			"webhooks update 1 --events node.created --disable", "webhooks rotate 1", "webhooks test 1", "webhooks test 2", "webhooks failed 1",
			"webhooks redeliver 1 --all", "webhooks redeliver 2 7 8", "webhooks delete 1 --force",
		},
		"relays.txt": {
			"relays list", "relays show ams-1", "relays show ams-3", "relays create ams-2 --region ams", "relays drain ams-1", "relays drain ams-1 --cancel", "relays delete ams-1 --force",
		},
		"service.txt": {"whoami", "health", "status", "cluster status", "version", "openapi", "debug digest", "noise-key status", "noise-key rotate", "noise-key retire"},
	} {
		t.Run(file, func(t *testing.T) {
			var all strings.Builder
			for _, command := range commands {
				for _, form := range []string{"", " -o json", " -o yaml"} {
					args := strings.Fields(command + form)
					all.WriteString(fairlead(t, socket, args).transcript(args) + "\n")
				}
			}
			golden(t, file, strings.ReplaceAll(all.String(), runtime.Version(), "go1.26.8"))
		})
	}
}

func TestCreatedKeyIsTheFirstLineOfStdout(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	for command, want := range map[string]string{
		"preauthkeys create --user alice": "flp_0000aaaaZZZZ_the-secret\n",
		"apikeys create":                  "flk_7Qd0XhVb2mTa_the-secret\n",
	} {
		r := fairlead(t, socket, strings.Fields(command))
		if got := r.stdout.String(); got != want {
			t.Errorf("%s: stdout %q, want %q", command, got, want)
		}
	}
}

func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	got := table("NAME", []string{"evil\x1b[31m\u009b\u202ename\tx\n"}, func(s string) []string { return []string{s} })
	if want := "NAME\nevil\ufffd[31m\ufffd\ufffdname\ufffdx\ufffd\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestYAMLSaysWhatJSONSays(t *testing.T) {
	value := map[string]any{"texts": []any{
		"", "yes", "no", "null", "~", "1", "1e3", "0x1f", "2026-03-01", "a: b", "# no comment", "- dash", "two\nlines\n", " spaces ",
		"quote \" and '", "back\\slash", "<html> & more", "\u2028", "é", "😀", "\x00\x1b", "tab\t",
	}, "empty": []any{}, "none": nil, "object": map[string]any{}, "number": 4711.0, "truth": true}
	text, err := encodeYAML(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	asJSON, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(asJSON, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(value), got); diff != "" {
		t.Errorf("(-json +yaml):\n%s", diff)
	}
}

func TestYAMLShowsWhateverANodeCallsItself(t *testing.T) {
	for _, name := range []string{"\ufeff", "\uffff", "\u2028", "\u202e", "\u0085", "é", "👩‍💻", "\U000e0001"} {
		text, err := encodeYAML(map[string]string{"name": name})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		var back map[string]string
		if err := yaml.Unmarshal([]byte(text), &back); err != nil || back["name"] != name {
			t.Errorf("%q became %q (%v)", name, text, err)
		}
	}
}
