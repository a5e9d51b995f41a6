package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	closed  = `{"acls": []}`
	opened  = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}`
	warning = "all access is denied until it is fixed"
)

func writePolicy(t *testing.T, file, text string) string {
	t.Helper()
	if file == "" {
		file = filepath.Join(t.TempDir(), "policy.hujson")
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// inForce waits until this text is the active policy.
func inForce(t *testing.T, s settings, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := command(t, s, "policy", "get"); got.stdout != text {
			return errors.New("in force: " + got.stdout + got.stderr)
		}
		return nil
	})
}

// An unconfirmed policy reverts even if the process that saved it was killed.
func TestUnconfirmedPolicyOfAKilledServiceGivesWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		mustCommand(t, s, "policy", "set", writePolicy(t, "", opened))
		mustCommand(t, s, "policy", "set", writePolicy(t, "", closed), "--confirm-within", "10s")
		inForce(t, s, closed)
		p.kill(t)
		p = serve(t, s)
		inForce(t, s, opened)
		says(t, mustCommand(t, s, "policy", "history"), "version 2 was not confirmed within 10s")
		says(t, p.log.String(), "policy reverted")
	})
}

func TestConfirmedPolicyStays(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	serve(t, s)
	mustCommand(t, s, "policy", "set", writePolicy(t, "", closed), "--confirm-within", "10s")
	mustCommand(t, s, "policy", "confirm")
	if got := mustCommand(t, s, "policy", "history", "-o", "json"); strings.Count(got, `"version"`) != 1 || !strings.Contains(got, `"confirmBy": null`) {
		t.Error(got)
	}
}

func TestHangupReadsThePolicyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.hujson")
	s := onSQLite(t).with("policy.path", file)
	p := serve(t, s)
	inForce(t, s, closed)
	says(t, mustCommand(t, s, "health"), "pass", warning)
	writePolicy(t, file, opened)
	p.signal(t, syscall.SIGHUP)
	inForce(t, s, opened)
	writePolicy(t, file, opened[:20])
	p.signal(t, syscall.SIGHUP)
	eventually(t, func() error {
		if text := mustCommand(t, s, "health"); !strings.Contains(text, "line 1, column ") {
			return errors.New(text)
		}
		return nil
	})
	p.stop(t)
	serve(t, s) // the file is invalid, so the last policy stays active
	inForce(t, s, opened)
}

func TestPolicyOnTheCommandLine(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, settings settings) {
		p := serve(t, settings)
		mustCommand(t, settings, "users", "create", "alice")
		key := strings.TrimSpace(mustCommand(t, settings, "preauthkeys", "create", "--user", "alice"))
		p.client("").must(t, 200, "POST", "/api/v1/machine", registration(key, "laptop"))
		s := &session{settings: settings}
		for _, line := range []string{
			"policy get", "policy history", "policy diff", "policy confirm", "policy why alice laptop:80",
			"policy check testdata/policy/ops.hujson", "policy check testdata/policy/wrong.hujson", "policy check testdata/policy/missing.hujson",
			"policy set testdata/policy/wrong.hujson", "policy set testdata/policy/failing.hujson", "policy test testdata/policy/failing.hujson",
			"policy preview testdata/policy/ops.hujson", "policy set testdata/policy/ops.hujson --if-version 7",
			"policy set testdata/policy/ops.hujson --if-version 0", "policy set testdata/policy/ops.hujson", "policy get", "policy test",
			"policy why alice laptop:22", "policy why alice laptop:80", "policy why alice desktop",
			"policy diff --file testdata/policy/failing.hujson", "policy rollback 2", "policy rollback 1 --confirm-within 1s",
		} {
			s.types(t, line)
		}
		golden(t, "policy.txt", masked(s.text.String()))
	})
}

func TestPolicyWarnsOfUsersWhoDoNotExist(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	file := writePolicy(t, "", `{"groups": {"group:a": ["nobdy"]}, "acls": [{"action": "accept", "src": ["group:a"], "dst": ["*:*"]}]}`)
	offline := command(t, s, "policy", "check", file)
	if offline.status != 0 || offline.stderr != "" {
		t.Errorf("without a server: status %d, %s", offline.status, offline.stderr)
	}
	serve(t, s)
	warning := file + ": warning: unknown user nobdy\n"
	for verb, want := range map[string]string{
		"check": warning,
		"set":   "Pairs of nodes: 0 lost, 0 gained, 0 changed, 0 unchanged\nNote: unknown user nobdy\n",
	} {
		r := command(t, s, "policy", verb, file)
		if r.status != 0 || r.stderr != want {
			t.Errorf("policy %s: status %d, %q, want %q", verb, r.status, r.stderr, want)
		}
	}
}
