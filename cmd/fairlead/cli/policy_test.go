package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func policyFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.hujson")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPolicyCheckNamesEveryPlace(t *testing.T) {
	good := policyFile(t, `{"acls": [], "ssh": [], "tests": [{"src": "alice", "deny": ["100.64.0.1:22"]}]}`)
	bad := policyFile(t, "{\n  \"acls\": [{\"action\": \"deny\", \"src\": [\"*\"], \"dst\": [\"*:*\"]}],\n  \"grups\": {}\n}")
	r := fairlead(t, "/nowhere", []string{"policy", "check", good})
	if want := good + ": no problems; 0 rules (nobody can reach anyone), 0 SSH rules, 1 test\n"; r.status != 0 || r.stdout.String() != want {
		t.Errorf("status %d, %q, want %q", r.status, &r.stdout, want)
	}
	r = fairlead(t, "/nowhere", []string{"policy", "check", bad})
	lines := strings.Split(strings.TrimSpace(r.stderr.String()), "\n")
	if r.status != 1 || len(lines) != 3 || !strings.HasPrefix(lines[0], bad+":2:") || !strings.HasPrefix(lines[1], bad+":3:3: ") || lines[2] != "Error: "+bad+" has 2 problems" {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
	r = fairlead(t, "/nowhere", []string{"policy", "check", "-"}, func(e *Env) { e.Stdin = strings.NewReader(`{}`) })
	if r.status != 0 || !strings.HasPrefix(r.stdout.String(), "standard input: no problems; ") {
		t.Errorf("status %d, %s", r.status, &r.stdout)
	}
	piped := func(e *Env) { e.Stdin = strings.NewReader(`{"acls": 3}`) }
	r = fairlead(t, "/nowhere", []string{"policy", "check", "-"}, piped)
	if r.status != 1 || !strings.HasPrefix(r.stderr.String(), "standard input:1:10: ") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
}

func TestPolicyCheckSaysWhatATextWithoutRulesMeans(t *testing.T) {
	file := policyFile(t, `{}`)
	r := fairlead(t, "/nowhere", []string{"policy", "check", file})
	if want := file + ": no problems; 0 rules (neither acls nor grants: everyone can reach everyone), 0 SSH rules, 0 tests\n"; r.stdout.String() != want {
		t.Errorf("%q, want %q", &r.stdout, want)
	}
}

// Headscale's documentation has a policy in which a host has host bits.
func TestChecksWarnOfAHostWithHostBits(t *testing.T) {
	file := policyFile(t, `{"hosts": {"web": "10.9.8.1/29"}, "acls": []}`)
	warning := file + `:1:19: warning: host web is "10.9.8.1/29", which means the network 10.9.8.0/29: use that, or the address alone` + "\n"
	r := fairlead(t, "/nowhere", []string{"policy", "check", file})
	if r.status != 0 || r.stderr.String() != warning || !strings.Contains(r.stdout.String(), ": no problems; ") {
		t.Errorf("status %d, %q, %q, want %q", r.status, &r.stdout, &r.stderr, warning)
	}
	r = fairlead(t, "/nowhere", []string{"policy", "check", file, "--output", "json"})
	if r.status != 0 || !strings.Contains(r.stdout.String(), `which means the network 10.9.8.0/29`) {
		t.Errorf("status %d, %s", r.status, &r.stdout)
	}
	r = fairlead(t, "/nowhere", []string{"config", "check"}, func(e *Env) {
		e.Environ = append(e.Environ, "FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_POLICY_PATH="+file)
	})
	if r.status != 0 || r.stderr.String() != warning {
		t.Errorf("status %d, %q, want %q", r.status, &r.stderr, warning)
	}
}

func TestPolicyCheckSaysThatThereMayBeMoreProblems(t *testing.T) {
	file := policyFile(t, `{"acls": [`+strings.Repeat(`{"action": "deny", "src": ["*"], "dst": ["*:*"]}, `, 30)+`]}`)
	r := fairlead(t, "/nowhere", []string{"policy", "check", file})
	if want := "\nError: " + file + " has at least 20 problems: fix these and check again\n"; r.status != 1 || !strings.HasSuffix(r.stderr.String(), want) {
		t.Errorf("status %d, %s, want %s", r.status, &r.stderr, want)
	}
}

func TestPolicyCheckGivesScriptsTheProblems(t *testing.T) {
	r := fairlead(t, "/nowhere", []string{"policy", "check", policyFile(t, `{"acls": 3}`), "--output", "json"})
	var result policyCheckResult
	if err := json.Unmarshal(r.stdout.Bytes(), &result); err != nil || r.status != 1 || len(result.Problems) != 1 || result.Problems[0].Column != 10 {
		t.Errorf("status %d, %v, %s", r.status, err, &r.stdout)
	}
}

func TestBadPolicyIsNeverSent(t *testing.T) {
	socket, log := listen(t, cannedServer())
	bad := policyFile(t, `{"acls": [{}]}`)
	for _, command := range []string{"set", "preview", "test"} {
		if r := fairlead(t, socket, []string{"policy", command, bad}); r.status != 1 {
			t.Errorf("%s: status %d", command, r.status)
		}
	}
	if sent := log.requests(); len(sent) > 0 {
		t.Errorf("requests were sent: %v", sent)
	}
}

func TestProblemsThatTheServerFindsHaveTheirPlace(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	file := policyFile(t, "// unlucky\n{}")
	r := fairlead(t, socket, []string{"policy", "set", file})
	if want := file + ":3: test: alice should reach it and does not\nError: " + file + " has 1 problem\n"; r.status != 1 || r.stderr.String() != want {
		t.Errorf("status %d, %s, want %s", r.status, &r.stderr, want)
	}
}

func TestNobodyIsAskedAboutAPolicyWhoseTestsFail(t *testing.T) {
	socket, log := listen(t, cannedServer())
	file := policyFile(t, "// unlucky\n{}")
	r := fairlead(t, socket, []string{"policy", "set", file}, func(e *Env) { e.Terminal = true })
	if want := file + ":3: test: alice should reach it and does not\nError: " + file + " has 1 problem\n"; r.status != 1 || r.stderr.String() != want {
		t.Errorf("status %d, %s, want %s", r.status, &r.stderr, want)
	}
	if sent := log.requests(); len(sent) != 1 || sent[0].Path != "/api/v1/policy/preview" {
		t.Errorf("requests: %v", sent)
	}
	r = fairlead(t, socket, []string{"policy", "preview", file})
	if want := "\nFailing: test on line 3: alice should reach it and does not\n"; r.status != 0 || !strings.Contains(r.stdout.String(), want) {
		t.Errorf("status %d, %s, want %s", r.status, &r.stdout, want)
	}
}

func TestPolicySetAsksWhenNobodyReachesAnyoneAnyMore(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"policy", "set", policyFile(t, "// nobody\n{}")}, func(e *Env) { e.Terminal, e.Stdin = true, strings.NewReader("n\n") })
	const effect = "Pairs of nodes: 6 lost, 0 gained, 0 changed, 0 unchanged\nNodes with less access: 1 (0 online)\n" +
		"Warning: with this policy, nobody can reach anyone\n"
	want := effect + "Save the policy anyway? [y/N] "
	if r.status != 1 || !strings.HasPrefix(r.stderr.String(), want) {
		t.Errorf("status %d, %s, want %s", r.status, &r.stderr, want)
	}
	file := policyFile(t, "// nobody\n{}")
	r = fairlead(t, socket, []string{"policy", "set", file})
	if want := effect + "Error: not saved: with this policy, nobody can reach anyone; to save it anyway, use --force\n"; r.status != 1 || r.stderr.String() != want {
		t.Errorf("without a terminal: status %d, %s, want %s", r.status, &r.stderr, want)
	}
	if r = fairlead(t, socket, []string{"policy", "set", file, "--force"}); r.status != 0 {
		t.Errorf("with --force: status %d, %s", r.status, &r.stderr)
	}
}

func TestGoingBackToNoPolicyIsSaid(t *testing.T) {
	socket, _ := listen(t, answering(200, "application/json", `{"policy": "", "version": "4"}`))
	for _, command := range [][]string{{"policy", "rollback", "2", "--force"}, {"policy", "revert"}} {
		r := fairlead(t, socket, command)
		if r.status != 0 || r.stdout.String() != "Policy removed (version 4): everyone can reach everyone\n" {
			t.Errorf("%v: status %d, %s%s", command, r.status, &r.stdout, &r.stderr)
		}
	}
}

func TestPolicySetSaysWhenNothingWaits(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"policy", "set", policyFile(t, "// in force already\n{}"), "--confirm-within", "5m"})
	if r.status != 0 || !strings.HasSuffix(r.stdout.String(), "is already active with this text; there is nothing to confirm\n") {
		t.Errorf("status %d, %s", r.status, &r.stdout)
	}
}

func TestPolicyThatCannotBeSavedIsNoWrongUsage(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"policy", "set", policyFile(t, "// of the file\n{}")})
	if r.status != 1 || !strings.HasSuffix(r.stderr.String(), "\nError: the policy is a file: edit it\n") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
}

func TestPolicySetAsksWhenAGuardWarns(t *testing.T) {
	socket, log := listen(t, cannedServer())
	file := policyFile(t, `{"acls": []}`)
	at := func(answer string) func(*Env) {
		return func(e *Env) { e.Terminal, e.Stdin = true, strings.NewReader(answer) }
	}
	r := fairlead(t, socket, []string{"policy", "set", file}, at("n\n"))
	if r.status != 1 || !strings.Contains(r.stderr.String(), "Warning: no node can reach tag:router on port 22 any more\nSave the policy anyway? [y/N] ") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
	if sent := log.requests(); len(sent) != 1 || sent[0].Path != "/api/v1/policy/preview" {
		t.Errorf("requests: %v", sent)
	}
	for _, run := range []*run{
		fairlead(t, socket, []string{"policy", "set", file}, at("y\n")),
		fairlead(t, socket, []string{"policy", "set", file, "--force"}, at("")),
		fairlead(t, socket, []string{"policy", "rollback", "6"}, at("y\n")),
		fairlead(t, socket, []string{"policy", "set", file}),
	} {
		if run.status != 0 || !strings.Contains(run.stdout.String(), "Policy version 7 is now active") {
			t.Errorf("status %d, %s%s", run.status, &run.stdout, &run.stderr)
		}
	}
}

func TestPolicyTextArrivesAsItIs(t *testing.T) {
	text := "{\t\"acls\": [] // \x1b[31m\n}"
	socket, _ := listen(t, answering(200, "application/json", `{"policy": "{\t\"acls\": [] // \u001b[31m\n}", "version": "1"}`))
	if r := fairlead(t, socket, []string{"policy", "get"}); r.stdout.String() != text {
		t.Errorf("%q, want %q", &r.stdout, text)
	}
	r := fairlead(t, socket, []string{"policy", "get"}, func(e *Env) { e.Terminal = true })
	if got := r.stdout.String(); strings.ContainsAny(got, "\x1b\t") || !strings.HasSuffix(got, "}\n") {
		t.Errorf("at a terminal: %q", got)
	}
}

func TestPolicyDiffComparesWithAFile(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	file := policyFile(t, "// open\n{\"acls\": []}\n")
	r := fairlead(t, socket, []string{"policy", "diff", "--file", file})
	if want := "--- version 7\n+++ " + file + "\n@@ -1,2 +1,2 @@\n-// closed\n+// open\n {\"acls\": []}\n"; r.stdout.String() != want {
		t.Errorf("%s, want %s", &r.stdout, want)
	}
}

func TestPolicyTestExitsWithOneWhenATestFails(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"policy", "test", policyFile(t, "{}")})
	if r.status != 1 || r.stdout.String() != "test on line 21: alice should reach tag:db:22 and does not\n" || r.stderr.String() != "Error: 1 failure in 3 tests\n" {
		t.Errorf("status %d, %s%s", r.status, &r.stdout, &r.stderr)
	}
}

func TestPortIsTakenOffAnEnd(t *testing.T) {
	for text, want := range map[string][2]string{
		"db-1": {"db-1", ""}, "db-1:5432": {"db-1", "5432"}, "tag:db": {"tag:db", ""}, "tag:db:22": {"tag:db", "22"}, "tag:a:b": {"tag:a:b", ""}, "tag:a:b:22": {"tag:a:b", "22"}, "group:ops": {"group:ops", ""},
		"fd7a:115c:a1e0::2": {"fd7a:115c:a1e0::2", ""}, "[fd7a:115c:a1e0::2]:53": {"[fd7a:115c:a1e0::2]", "53"}, "10.0.0.1:443": {"10.0.0.1", "443"},
		"alice@example.com:22": {"alice@example.com", "22"}, "autogroup:member": {"autogroup:member", ""}, "autogroup:self:22": {"autogroup:self", "22"},
	} {
		if end, port := splitPort(text); end != want[0] || port != want[1] {
			t.Errorf("%s: %q, %q", text, end, port)
		}
	}
}

func TestConfigCheckReadsThePolicyFileToo(t *testing.T) {
	for text, want := range map[string]string{`{"acls": []}`: "", `{"acls": 3}`: ":1:10: "} {
		file := policyFile(t, text)
		r := fairlead(t, "", []string{"config", "check"}, func(e *Env) {
			e.Environ = []string{"FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_SERVER_URL=https://mesh.example.com", "FAIRLEAD_POLICY_PATH=" + file}
		})
		if (r.status != 0) != (want != "") || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("%s: status %d, %s%s", text, r.status, &r.stdout, &r.stderr)
		}
	}
}

// Otherwise, people fix one mistake and then get the next one.
func TestUndefinedGroupsAreReportedWithOtherProblems(t *testing.T) {
	const text = `{"groups": {"group:dev": []}, "acls": [
{"action": "accept", "src": ["group:dev", "group:devs"], "dst": ["*:*"]},
{"action": "allow", "src": ["*"], "dst": ["*:*"]}]}`
	r := fairlead(t, "/nowhere", []string{"policy", "check", "-"}, func(e *Env) { e.Stdin = strings.NewReader(text) })
	said := r.stderr.String()
	if r.status != 1 || !strings.Contains(said, "group:devs is not defined in groups") || !strings.Contains(said, `"allow"`) || strings.Contains(said, "group:dev is not") {
		t.Errorf("%d: %s", r.status, said)
	}
	r = fairlead(t, "/nowhere", []string{"policy", "check", "-", "--output", "json"}, func(e *Env) { e.Stdin = strings.NewReader(text) })
	if out := r.stdout.String(); r.status != 1 || !strings.Contains(out, "group:devs is not defined in groups") || !strings.Contains(out, `allow`) {
		t.Errorf("%d: %s", r.status, out)
	}
}
