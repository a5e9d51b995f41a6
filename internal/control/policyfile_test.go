package control_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// policyAt writes a policy file. A watching replica notices a new text only if its size
// differs, because file times do not follow the test's clock.
func policyAt(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "policy.hujson")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantWarnings(t *testing.T, r *replica, parts ...string) {
	t.Helper()
	got := r.PolicyWatch.Warnings()
	if len(got) != len(parts) {
		t.Fatalf("warnings: %q, want %q", got, parts)
	}
	for i, part := range parts {
		if !strings.Contains(got[i], part) {
			t.Errorf("warning %q, want %q", got[i], part)
		}
	}
}

func TestPolicyFileIsTheTruth(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		file := policyAt(t, "", nobody)
		a := c.startWith(t, "a", "", file)
		pass(time.Second)
		wantPolicy(t, a.ledger, nobody, 1)
		for _, use := range []func() error{
			func() error { _, err := a.Policies.Save(t.Context(), ada, draft(everyone)); return err },
			func() error { _, err := a.Policies.Rollback(t.Context(), ada, 1, control.PolicyDraft{}); return err },
		} {
			wantReason(t, use(), control.Invalid)
		}
		policyAt(t, file, everyone)
		pass(3 * time.Second)
		wantPolicy(t, a.ledger, everyone, 2)
		p, _ := a.ledger.World().Policy()
		if p.Source != "file" || p.Author != "policy file" {
			t.Errorf("%+v", p)
		}
		wantWarnings(t, a)
	})
}

func TestHangupReadsThePolicyFileAtOnce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		file := policyAt(t, "", nobody)
		a := c.startWith(t, "a", "", file)
		pass(2100 * time.Millisecond)
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		policyAt(t, file, strings.Replace(nobody, " ", "\n", 1))
		if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil { // the change is not visible in the file's attributes
			t.Fatal(err)
		}
		pass(10 * time.Second)
		wantPolicy(t, a.ledger, nobody, 1)
		a.hangup <- os.Interrupt
		pass(10 * time.Millisecond)
		wantPolicy(t, a.ledger, strings.Replace(nobody, " ", "\n", 1), 2)
	})
}

func TestBadPolicyFileChangesNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		file := policyAt(t, "", nobody)
		a := c.startWith(t, "a", "", file)
		pass(3 * time.Second)
		policyAt(t, file, everyone[:40])
		pass(3 * time.Second)
		wantPolicy(t, a.ledger, nobody, 1)
		wantWarnings(t, a, "line 1, column")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		wantWarnings(t, a, "no such file")
		a.kill()
		a = c.startWith(t, "a2", "", file)
		pass(3 * time.Second)
		wantPolicy(t, a.ledger, nobody, 1) // the last valid policy stays active
		wantWarnings(t, a, "no such file")
		policyAt(t, file, everyone)
		pass(10 * time.Second) // the previous run counts as alive for a while
		wantPolicy(t, a.ledger, everyone, 2)
		wantWarnings(t, a)
	})
}

func TestWithoutAUsablePolicyFileNobodyReachesAnyone(t *testing.T) {
	for name, text := range map[string]string{
		"missing": "", "not a policy": "{", "fails its tests": `{"acls": [], "tests": [{"src": "alice", "accept": ["100.64.0.1:22"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				c := newCluster(t)
				file := filepath.Join(t.TempDir(), "policy.hujson")
				if text != "" {
					policyAt(t, file, text)
				}
				a := c.startWith(t, "a", "", file)
				pass(3 * time.Second)
				wantPolicy(t, a.ledger, nobody, 1)
				wantWarnings(t, a, "not loaded; all access is denied until it is fixed: ")
				policyAt(t, file, everyone)
				pass(3 * time.Second)
				wantPolicy(t, a.ledger, everyone, 2)
				wantWarnings(t, a)
			})
		})
	}
}

func TestPolicyFileThatIsNoneHoldsNobodyUp(t *testing.T) {
	for name, place := range map[string]func(string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.hujson")
			if err := place(file); err != nil {
				t.Fatal(err)
			}
			waittest.Bubble(t, func(t *testing.T) {
				a := newCluster(t).startWith(t, "a", "", file)
				pass(3 * time.Second)
				wantPolicy(t, a.ledger, nobody, 1)
				wantWarnings(t, a, "is not a regular file")
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				policyAt(t, file, everyone)
				pass(3 * time.Second)
				wantPolicy(t, a.ledger, everyone, 2)
			})
		})
	}
}

func TestReplicasWithDifferentPolicyFilesChangeNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		one, other := policyAt(t, "", nobody), policyAt(t, "", nobody)
		a, b := c.startWith(t, "a", "", one), c.startWith(t, "b", "", other)
		pass(5 * time.Second)
		policyAt(t, one, everyone)
		pass(time.Minute)
		for _, r := range []*replica{a, b} {
			wantPolicy(t, r.ledger, nobody, 1)
			wantWarnings(t, r, "a different policy file")
		}
		policyAt(t, other, everyone)
		pass(10 * time.Second)
		for _, r := range []*replica{a, b} {
			wantPolicy(t, r.ledger, everyone, 2)
			wantWarnings(t, r)
		}
		b.kill() // a dead replica does not count
		policyAt(t, one, ssh)
		pass(15 * time.Second)
		wantPolicy(t, a.ledger, ssh, 3)
	})
}

func TestWarningsAboutThePolicyFileAreLoggedOncePerText(t *testing.T) {
	s := open(t)
	file := policyAt(t, "", `{"hosts": {"web": "10.9.8.1/29"}, "acls": []}`)
	var log strings.Builder
	c := control.New(control.Config{Ledger: s.ledger, History: s.history, Log: slog.New(slog.NewTextHandler(&log, nil)), Registerer: prometheus.NewRegistry(), PolicyFile: file})
	for range 2 {
		if err := c.PolicyFile.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "which means the network 10.9.8.0/29"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}
