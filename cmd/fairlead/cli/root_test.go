package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// TestHelp checks the layout of the help. Its text is in docs/cli.md, which is generated and checked separately.
func TestHelp(t *testing.T) {
	var all strings.Builder
	for _, command := range []string{"--help", "users --help", "backup --help", "nodes expire --help"} {
		args := strings.Fields(command)
		all.WriteString(fairlead(t, "", args).transcript(args) + "\n")
	}
	golden(t, "help.txt", all.String())
}

func TestHelpFitsEightyColumns(t *testing.T) {
	eachCommand(New(Env{}), func(cmd *cobra.Command) {
		r := fairlead(t, "", append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		if r.status != 0 || r.stdout.Len() == 0 {
			t.Errorf("%s: status %d, %s", cmd.CommandPath(), r.status, &r.stderr)
		}
		for line := range strings.Lines(r.stdout.String()) {
			if displayWidth(strings.TrimSuffix(line, "\n")) > helpWidth {
				t.Errorf("%s: too wide: %s", cmd.CommandPath(), line)
			}
		}
	})
}

func TestVersionFlagNeedsNoServer(t *testing.T) {
	r := fairlead(t, "/nowhere", []string{"--version"})
	if got, want := r.stdout.String(), "fairlead 0.1.0\n"; r.status != 0 || got != want {
		t.Errorf("status %d, stdout %q, want %q", r.status, got, want)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	eachCommand(New(Env{}), func(cmd *cobra.Command) {
		if !strings.Contains(cmd.Example, "fairlead") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}

func TestCreateHelpStatesRecommendedLifetimes(t *testing.T) {
	for command, lifetimes := range map[string][]string{
		"preauthkeys create --help": {"1 to 24 hours", "1h in production", "24h for testing"},
		"apikeys create --help":     {"90d in production", "365d for additional console keys", "999d only for development"},
	} {
		help := strings.Join(strings.Fields(fairlead(t, "", strings.Fields(command)).stdout.String()), " ")
		for _, text := range lifetimes {
			if !strings.Contains(help, text) {
				t.Errorf("%s does not say %q", command, text)
			}
		}
	}
}

// long: it has one line for each mistake
func TestWrongUsageExitsWithTwoAndAsksNoServer(t *testing.T) {
	socket, log := listen(t, cannedServer())
	var all strings.Builder
	for _, args := range [][]string{
		{"usr", "list"},
		{"users", "lst"},
		{"users", "explode"},
		{"users", "create"},
		{"users", "create", ""},
		{"users", "create", "two", "words"},
		{"users", "rename", "alice"},
		{"users", "list", "--nonsense"},
		{"users", "list", "--outptu", "json"},
		{"users", "list", "-x"},
		{"users", "destroy", "alice"},
		{"namespaces", "list"},
		{"nodes", "register", "--user", "alice", "--key", "abc"},
		{"nodes", "list-routes", "-i", "1"},
		{"nodes", "list", "--usr", "alice"},
		{"nodes", "list", "-u", "alice"},
		{"nodes", "list", "-n", "alice"},
		{"nodes", "tag", "-i", "1", "-t", "tag:a"},
		{"nodes", "tag", "web-1", "-t", "tag:a"},
		{"nodes", "approve-routes", "1", "-r", "10.0.0.0/8"},
		{"nodes", "expire", "web-1", "-f"},
		{"--usr", "alice"},
		{"users", "list", "--output", "xml"},
		{"preauthkeys", "create", "--user", "alice", "--expiration", "soon"},
		{"preauthkeys", "create", "--user", "alice", "--expiration", "-1h"},
		{"preauthkeys", "expire"},
		{"apikeys", "expire"},
		{"apikeys", "expire", "--key", "1", "--prefix", "7Qd0"},
		{"apikeys", "expire", "1", "--prefix", "7Qd0"},
		{"apikeys", "delete", "1", "2"},
		{"apikeys", "delete", "1", "--key", "2"},
		{"nodes", "show"},
		{"nodes", "show", "1", "2"},
		{"nodes", "show", "1", "--identifier", "2"},
		{"nodes", "delete"},
		{"nodes", "delete", "--identifier", "web-1"},
		{"nodes", "rename", "web-1"},
		{"nodes", "rename", "web-1", "web-2", "--reset"},
		{"nodes", "tag", "web-1"},
		{"nodes", "tag", "web-1", "--add", "tag:a", "--remove", "tag:b"},
		{"nodes", "delete", "web-1", "--user", "alice"},
		{"nodes", "delete", "web-1", ""},
		{"nodes", "expire", "--user", "alice", "--all"},
		{"nodes", "approve-routes", "web-1", "web-2", "--routes", "10.0.0.0/8"},
		{"nodes", "approve-routes", "web-1", "--routes", "10.0.0.0/8", "--all"},
		{"users", "delete"},
		{"users", "delete", "alice", ""},
		{"preauthkeys", "delete", "1", "2", "--key", "3"},
		{"nodes", "address", "web-1"},
		{"nodes", "expire"},
		{"nodes", "expire", ""},
		{"nodes", "expire", "--all", "--all-offline"},
		{"nodes", "expire", "--all", "web-1"},
		{"nodes", "expire", "--all-offline", "--identifier", "1"},
		{"nodes", "expire", "--all", "--never", "--at", "30d"},
		{"nodes", "expire", "web-1", "--never", "--at", "30d"},
		{"nodes", "expire", "web-1", "--at", "soon"},
		{"nodes", "approve-routes", "web-1"},
		{"nodes", "enrol", "web-1"},
		{"nodes", "presence", "web-1", "web-2"},
		{"nodes", "presence", "--from", "yesterday"},
		{"routes", "enable"},
		{"routes", "enable", "10.1.0.0/16"},
		{"routes", "disable", "7", "--route-id", "7"},
		{"routes", "prefer", "7"},
		{"routes", "list", "--enabled", "--disabled"},
		{"dns", "set"},
		{"dns", "set", "--magic-dns=perhaps"},
		{"dns", "set", "--magic-dns", "true"},
		{"dns", "set", "--magic-dns", "perhaps"},
		{"dns", "record", "add", "a.example.com"},
		{"dns", "record", "add", "a.example.com", "b.example.com"},
		{"dns", "record", "remove"},
		{"dns", "record", "remove", "a.example.com", "b.example.com"},
		{"dns", "record", "remove", "a.example.com", "10.0.0.1", "10.0.0.2"},
		{"dns", "split", "set", "a.example.com"},
		{"dns", "split", "set", "a.example.com", "10.0.0.1", "--records-only"},
		{"dns", "split", "remove", "a.example.com", "10.0.0.1"},
		{"auth", "approve", "7K3M-9QXD"},
		{"auth", "approve", "--user", "alice"},
		{"auth", "reject"},
		{"ssh", "approve"},
		{"ssh", "reject", "7K3M-9QXD", "0123-4567"},
		{"policy", "check"},
		{"policy", "set", "a", "b"},
		{"policy", "set", "a", "--confirm-within", "soon"},
		{"policy", "set", "a", "--confirm-within", "5s"},
		{"policy", "rollback", "1", "--if-version", "x"},
		{"policy", "diff", "1", "2", "3"},
		{"policy", "diff", "1", "--file", "a"},
		{"policy", "why", "alice"},
		{"policy", "test", "a", "b"},
		{"audit", "list", "--from", "yesterday"},
		{"audit", "list", "--limit", "x"},
		{"webhooks", "create"},
		{"webhooks", "update", "1"},
		{"webhooks", "update", "1", "--enable", "--disable"},
		{"webhooks", "redeliver", "1"},
		{"webhooks", "redeliver", "1", "7", "--all"},
		{"backup", "now"},
		{"backup", "--encrypt-to", "alice"},
		{"backup", "--server", "https://mesh.example.com"},
		{"backup", "verify"},
		{"restore"},
		{"restore", "a", "b"},
		{"restore", "a", "--server", "https://mesh.example.com"},
		{"db", "move"},
		{"help", "explode"},
		{"help", "users", "explode"},
		{"users", "list", "--server", "mesh.example.com"},
		{"users", "list", "--api-key", "flk_7Qd0XhVb2mTa_the-secret"},
		{"completion", "cmd.exe"},
		{"man"},
		{"man", "--dir", "/nowhere", "--markdown", "/nowhere"},
	} {
		r := fairlead(t, socket, args)
		if r.status != 2 || r.stdout.Len() > 0 || strings.Count(r.stderr.String(), "\n") != 1 {
			t.Errorf("%v: status %d, stdout %q, stderr %q; want status 2 and one line on stderr", args, r.status, &r.stdout, &r.stderr)
		}
		all.WriteString(r.transcript(args))
	}
	golden(t, "usage.txt", all.String())
	if sent := log.requests(); len(sent) > 0 {
		t.Errorf("requests were sent: %v", sent)
	}
}

func TestGroupAloneShowsItsHelpAndExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{{}, {"users"}} {
		r := fairlead(t, "", args)
		if got := r.stderr.String(); r.status != 2 || r.stdout.Len() > 0 || !strings.Contains(got, "Commands:\n") || strings.Contains(got, "Error") {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, r.status, &r.stdout, &r.stderr)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := fairlead(t, "", []string{"completion", shell})
		if r.status != 0 || !strings.Contains(r.stdout.String(), "__complete") {
			t.Errorf("%s: status %d, %d bytes", shell, r.status, r.stdout.Len())
		}
	}
	socket, _ := listen(t, cannedServer())
	for line, want := range map[string]string{
		"users delete ":              "alice\nbob\n:4\n",
		"preauthkeys create --user ": "alice\nbob\n:4\n",
		"users rename alice ":        ":4\n",
		"users list --output ":       "table\nwide\njson\nyaml\n:4\n",
		"completion ":                "bash\nzsh\nfish\npowershell\n:4\n",
		"nodes l":                    "list\tList nodes\n:4\n",
		"nodes show ":                "alices-laptop\nweb-1\n:4\n",
		"nodes rename web-1 ":        ":4\n",
		"nodes expire web-1 ":        "alices-laptop\nweb-1\n:4\n",
		"auth approve ":              "7K3M-9QXD\tBobs Phone\n0123-4567\ttv\n:4\n",
		"auth approve x --user ":     "alice\nbob\n:4\n",
		"routes enable ":             "7\t192.168.7.0/24 through alices-laptop\n12\tfd00:7::/64 through web-1\n:4\n",
		"routes enable 7 ":           ":4\n",
		"dns record add ":            ":4\n",
		"dns record remove ":         "grafana.mesh.example.com\nprinter.example.com\n:4\n",
		"dns record remove grafana.mesh.example.com ": "100.64.0.7\nfd7a:115c:a1e0::7\n:4\n",
		"dns split set ":                  "corp.example.com\nlab.example.com\n:4\n",
		"dns split set corp.example.com ": ":4\n",
		"ssh approve ":                    "7K3M-9QXD\talices-laptop to web-1 as root\n0123-4567\tci-7 to web-1 as deploy\n:4\n",
		"users delete --server nope ":     ":4\n",
		"apikeys delete ":                 "7Qd0XhVb2mTa\texpires 2026-05-30T09:30:00Z\n7Qd0ZZZZ0000\texpired 2026-02-28T00:00:00Z\n:4\n",
		"apikeys expire --key ":           "7Qd0XhVb2mTa\texpires 2026-05-30T09:30:00Z\n7Qd0ZZZZ0000\texpired 2026-02-28T00:00:00Z\n:4\n",
		"preauthkeys expire ":             "b81KzQx0LmN4\talice expired 2026-02-01T10:00:00Z\n0000aaaaZZZZ\texpires 2026-03-02T09:30:00Z\n:4\n",
		"nodes list --tag ":               "tag:server\ntag:web\n:4\n",
		"nodes list --us":                 "--user\tonly nodes of this user, by name or ID\n:4\n",
		"apikeys create --role ":          "read\noperator\nadmin\n:4\n",
		"nodes tag web-1 --tags ":         "tag:server\ntag:web\n:4\n",
		"nodes tag web-1 --tags tag:a,t":  "tag:a,tag:server\ntag:a,tag:web\n:4\n",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if got := fairlead(t, socket, args).stdout.String(); got != want {
			t.Errorf("completing %q: got %q, want %q", line, got, want)
		}
	}
}

func TestCompletionHasAllScopesAndOnlyEventsThatAre(t *testing.T) {
	var scopes []string
	for _, noun := range mesh.Nouns() {
		scopes = append(scopes, "dns,"+string(noun), "dns,"+string(noun)+":read")
	}
	got, _ := completeScopes()(nil, nil, "dns,")
	if diff := cmp.Diff(scopes, got); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	events, _ := completeEvents()(nil, nil, "")
	for _, name := range events {
		if !control.KnownEvent(name) {
			t.Errorf("there is no event %s", name)
		}
	}
}

func TestDestructiveCommandsNeedAPersonOrForce(t *testing.T) {
	for command, scripts := range map[string]bool{ // whether scripts may run the command without --force
		"users delete alice": false, "users delete alice alice": false,
		"preauthkeys expire --key 1": true, "preauthkeys expire 1 1": true, "preauthkeys delete --key 1": false, "preauthkeys delete 1 1": false,
		"apikeys expire --key 1": true, "apikeys expire --prefix 7Qd0": false, "apikeys expire --prefix 7Qd0XhVb2mTa": true, "apikeys delete --key 1": false,
		"routes disable 7": true, "routes delete --route-id 12": false, "dns reset": false,
		"webhooks rotate 1": true, "webhooks delete 1": false,
		"nodes delete web-1": false, "nodes delete web-1 web-1": false, "nodes delete --tag tag:web": false,
		"nodes tag --tag tag:web --tags tag:a": false, "nodes tag a b --add tag:a": true,
		"nodes expire web-1": true, "nodes expire --user alice": false, "nodes expire --all": false, "nodes expire --all-offline": false,
		"nodes expire web-1 --at 0s": true, "nodes expire web-1 --at 2020-01-01T00:00:00Z": true,
		"nodes expire --all --at 0s": false, "nodes expire --all --never": false, "nodes expire --user alice --at 30d": false,
	} {
		for _, c := range []struct {
			name     string
			terminal bool
			answer   string
			force    bool
			asks     bool
			changes  bool
		}{
			{name: "script", changes: scripts},
			{name: "forced script", force: true, changes: true},
			{name: "forced", terminal: true, force: true, changes: true},
			{name: "yes", terminal: true, answer: "y\n", asks: true, changes: true},
			{name: "no", terminal: true, answer: "n\n", asks: true},
			{name: "enter", terminal: true, answer: "\n", asks: true},
			{name: "end of input", terminal: true, asks: true},
		} {
			t.Run(command+"/"+c.name, func(t *testing.T) {
				socket, log := listen(t, cannedServer())
				args := strings.Fields(command)
				if c.force {
					args = append(args, "--force")
				}
				r := fairlead(t, socket, args, func(env *Env) {
					env.Terminal, env.Stdin = c.terminal, strings.NewReader(c.answer)
				})
				changed := false
				for _, req := range log.requests() {
					changed = changed || req.Method != http.MethodGet
				}
				if changed != c.changes || (r.status == 0) != c.changes {
					t.Errorf("changed %v, status %d", changed, r.status)
				}
				if refused := c.name == "script" && !scripts; refused && (r.status != 2 || !strings.Contains(r.stderr.String(), "without a terminal, this command needs --force; ")) {
					t.Errorf("status %d, stderr %q", r.status, &r.stderr)
				}
				if asked := strings.Contains(r.stderr.String(), " [y/N] "); asked != c.asks {
					t.Errorf("stderr %q", &r.stderr)
				}
			})
		}
	}
}

func TestQuestionCountsAllNodes(t *testing.T) {
	for command, want := range map[string]string{
		"nodes expire --all":          "Expire ALL 2 nodes in the network? Expired nodes have no access until they sign in again. [y/N] ",
		"nodes expire --all-offline":  "Expire all 2 nodes that are offline? Expired nodes have no access until they sign in again. [y/N] ",
		"nodes expire --all --at 0s":  "Expire 2 nodes (alices-laptop, web-1)? Expired nodes have no access until they sign in again. [y/N] ",
		"nodes expire --all --never":  "Disable expiry for 2 nodes (alices-laptop, web-1)? Expired nodes regain access immediately. [y/N] ",
		"nodes expire 1 2 --at 30d":   "Set the expiry of 1 node (web-1) to 2026-03-31T09:30:00Z? Expired nodes regain access immediately. [y/N] ",
		"nodes expire web-1 --at 0s":  "Expire node web-1? Expired nodes have no access until they sign in again. [y/N] ",
		"nodes expire web-1 --at 30d": "",
		"nodes expire web-1 web-2":    "Expire nodes web-1, web-2? Expired nodes have no access until they sign in again. [y/N] ",
	} {
		socket, _ := listen(t, cannedServer())
		r := fairlead(t, socket, strings.Fields(command), func(env *Env) { env.Terminal, env.Stdin = true, strings.NewReader("y\n") })
		if got := r.stderr.String(); r.status != 0 || got != want {
			t.Errorf("%s: status %d, stderr %q, want %q", command, r.status, got, want)
		}
	}
}

func TestQuestionNamesTheNodesThatGo(t *testing.T) {
	for command, want := range map[string]string{
		"users delete alice": "Tagged nodes added by user alice are kept: 1 node (web-1). To delete them too, use --delete-tagged\n" +
			"Delete user alice, their pre-auth keys and 2 nodes? The nodes lose access immediately. [y/N] ",
		"users delete alice --delete-tagged": "Delete user alice, their pre-auth keys, 1 tagged node (web-1) and 2 nodes? The nodes lose access immediately. [y/N] ",
	} {
		socket, _ := listen(t, cannedServer())
		r := fairlead(t, socket, strings.Fields(command), func(env *Env) { env.Terminal = true })
		if got := r.stderr.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q", command, got)
		}
	}
}

func TestNodesAreNamedToTheServerAsTheyWereGiven(t *testing.T) {
	for command, want := range map[string]request{
		"nodes show fd7a:115c:a1e0::1":          {Method: "GET", Path: "/api/v1/node/fd7a:115c:a1e0::1"},
		"nodes show a/b":                        {Method: "GET", Path: "/api/v1/node/a%2Fb"},
		"nodes delete --identifier 7 --force":   {Method: "DELETE", Path: "/api/v1/node/7"},
		"nodes rename --identifier 7 web":       {Method: "POST", Path: "/api/v1/node/7/rename/web"},
		"nodes rename web --reset":              {Method: "POST", Path: "/api/v1/node/web/rename"},
		"nodes move 7 --user bob":               {Method: "POST", Path: "/api/v1/node/7/user", Body: `{"user":"bob"}`},
		"nodes tag 7 --tags tag:a --tags tag:b": {Method: "POST", Path: "/api/v1/node/7/tags", Body: `{"tags":["tag:a","tag:b"]}`},
		"nodes approve --identifier 7":          {Method: "PUT", Path: "/api/v1/node/7/approval", Body: `{"approved":true}`},
		"nodes approve web-1 --withdraw":        {Method: "PUT", Path: "/api/v1/node/web-1/approval", Body: `{"approved":false}`},
		"nodes note --identifier 7 rack-7":      {Method: "PUT", Path: "/api/v1/node/7/note", Body: `{"text":"rack-7"}`},
		"nodes address 7 --ipv6 fd7a::1":        {Method: "PUT", Path: "/api/v1/node/7/addresses", Body: `{"ipv6":"fd7a::1"}`},
		"nodes expire a --identifier 7,8":       {Method: "POST", Path: "/api/v1/node/expire", Body: `{"all":false,"allOffline":false,"nodes":["a","7","8"]}`},
		"nodes expire --all --force":            {Method: "POST", Path: "/api/v1/node/expire", Body: `{"all":true,"allOffline":false}`},
		"nodes expire a --never":                {Method: "POST", Path: "/api/v1/node/a/expire", Body: `{"disableExpiry":true}`},
		"nodes expire a --at 1d":                {Method: "POST", Path: "/api/v1/node/a/expire", Body: `{"expiry":"2026-03-02T09:30:00Z"}`},
		"nodes expire a --at 2027-01-01T00:00:00+01:00": {
			Method: "POST", Path: "/api/v1/node/a/expire", Body: `{"expiry":"2027-01-01T00:00:00+01:00"}`,
		},
		"nodes approve-routes 7 --routes 10.1.0.0/16,::/0": {Method: "POST", Path: "/api/v1/node/7/approve_routes", Body: `{"routes":["10.1.0.0/16","::/0"]}`},
		"nodes approve-routes 7 --routes=":                 {Method: "POST", Path: "/api/v1/node/7/approve_routes", Body: `{"routes":[]}`},
		"routes enable --route-id 7":                       {Method: "POST", Path: "/api/v1/routes/7/enable"},
		"routes disable 7":                                 {Method: "POST", Path: "/api/v1/routes/7/disable"},
		"routes delete 7 --force":                          {Method: "DELETE", Path: "/api/v1/routes/7"},
		"routes prefer 7 --preference -10":                 {Method: "PATCH", Path: "/api/v1/routes/7", Body: `{"preference":-10}`},
		"auth approve abcdefgh --user alice":               {Method: "POST", Path: "/api/v1/auth/approve", Body: `{"authId":"abcdefgh","user":"alice"}`},
		"auth reject ABCD-EFGH --reason no":                {Method: "POST", Path: "/api/v1/auth/reject", Body: `{"authId":"ABCD-EFGH","reason":"no"}`},
		"ssh approve abcdefgh":                             {Method: "POST", Path: "/api/v1/ssh/approve", Body: `{"code":"abcdefgh"}`},
		"ssh reject ABCD-EFGH --reason no":                 {Method: "POST", Path: "/api/v1/ssh/reject", Body: `{"code":"ABCD-EFGH","reason":"no"}`},
	} {
		socket, log := listen(t, cannedServer())
		if r := fairlead(t, socket, strings.Fields(command)); r.status != 0 {
			t.Errorf("%s: status %d, %s", command, r.status, &r.stderr)
		}
		if diff := cmp.Diff([]request{want}, log.requests()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

func TestListFitsATerminal(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	for _, noun := range []string{"nodes", "routes", "audit"} {
		for line := range strings.Lines(fairlead(t, socket, []string{noun, "list"}).stdout.String()) {
			if len(line) > 100 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
}

func TestConfigCheckNeedsNoServer(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good, "server_url: https://mesh.example.com\ndns: {magic_dns: false}\n")
	write(bad, "server_url: https://mesh.example.com\ndns: {magic_dns: false}\nlisten_adr: x\nlog: {level: loud}\n")
	noEnv := func(env *Env) { env.Environ = nil }

	r := fairlead(t, "", []string{"config", "check", "--config", good}, noEnv)
	if r.status != 0 || !strings.Contains(r.stdout.String(), good) {
		t.Errorf("good file: status %d, stdout %q, stderr %q", r.status, &r.stdout, &r.stderr)
	}
	r = fairlead(t, "", []string{"config", "check", "--config", bad}, noEnv)
	for _, want := range []string{"failed to parse configuration", bad + ":3: ", "listen_addr", bad + ":4: ", "log.level"} {
		if r.status != 1 || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("bad file: status %d, stderr %q lacks %q", r.status, &r.stderr, want)
		}
	}
	write(bad, "server_url: https://mesh.example.com\ntls_cert_path: /nope\ntls_key_path: /nope\n")
	r = fairlead(t, "", []string{"config", "check", "--config", bad}, noEnv)
	if want := "Error: cannot load certificate: "; r.status != 1 || !strings.HasPrefix(r.stderr.String(), want) {
		t.Errorf("no certificate: status %d, stderr %q lacks %q", r.status, &r.stderr, want)
	}
}
