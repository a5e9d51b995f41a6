//go:build !race

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

const visitor = "visitor" // an operating system user on the host that accepts SSH sessions

// These are the messages of refused sessions. Those of older clients are shorter.
var (
	byPolicy        = regexp.MustCompile(`policy does not permit you to SSH|Permission denied`)
	byAdministrator = regexp.MustCompile(`an administrator rejected this session`)
)

// startShells starts alice's laptop, bob's desktop and a tagged host that accepts SSH sessions as
// the policy allows. The tagged host runs this client version.
func startShells(ctx context.Context, t *testing.T, version string) *town {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Fatalf("%v; install package openssh-client", err)
	}
	w := newTown(t)
	w.joinAll(ctx, clienttest.Options{}, map[string]string{"laptop": w.key(), "desktop": w.PreAuthKey("bob")})
	w.joinAll(ctx, clienttest.Options{Version: version}, map[string]string{"db": w.tagKey()}, "--ssh")
	// The host has its own /etc.
	script := fmt.Sprintf("echo %s:x:4321:4321::/tmp:/bin/sh >>/etc/passwd; echo %[1]s:x:4321: >>/etc/group", visitor)
	if out, err := w.hosts["db"].Command(ctx, "sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return w
}

// shell is a "tailscale ssh" that runs a command.
type shell struct {
	wait sync.WaitGroup
	text string // what it printed; read it only after the wait
	exit int
}

func (w *town) ssh(ctx context.Context, from, target string, command ...string) *shell {
	s := new(shell)
	s.wait.Go(func() {
		stdout, stderr, exit := w.daemons[from].CLI(ctx, append([]string{"ssh", target}, command...)...)
		s.text, s.exit = stdout+stderr, exit
	})
	w.t.Cleanup(s.wait.Wait)
	return s
}

// begins checks that the command runs as a user.
func (s *shell) begins(t *testing.T, user string) {
	t.Helper()
	s.wait.Wait()
	if want := "I am " + user + "\n"; s.exit != 0 || !strings.Contains(s.text, want) {
		t.Errorf("the session ends with code %d and says: %s; want %s", s.exit, s.text, want)
	}
}

// isRefused checks that the command does not run and that the output says why.
func (s *shell) isRefused(t *testing.T, why *regexp.Regexp) {
	t.Helper()
	s.wait.Wait()
	if s.exit == 0 || strings.Contains(s.text, "I am") || !why.MatchString(s.text) {
		t.Errorf("the session ends with code %d and says: %s; want %v", s.exit, s.text, why)
	}
}

// waiting returns the code of the session that is waiting for approval.
func (n network) waiting(ctx context.Context) (code string) {
	n.t.Helper()
	eventually(ctx, n.t, func() error {
		list, err := n.TryCLI(ctx, "ssh", "list")
		if err != nil {
			return err
		}
		if code = loginCode.FindString(list); code == "" {
			return fmt.Errorf("no session waits: %s", list)
		}
		return nil
	})
	return code
}

func TestPolicyDecidesWhoOpensShells(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		w := startShells(ctx, t, version)
		w.save(ctx, `{
			"groups":    {"group:ops": ["alice@"]},
			"tagOwners": {"tag:db": ["group:ops"]},
			"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}],
			"ssh": [
				{"action": "accept", "src": ["group:ops"], "dst": ["tag:db"], "users": ["visitor"]},
				{"action": "check", "checkPeriod": "always", "src": ["group:ops"], "dst": ["tag:db"], "users": ["root"]},
			],
		}`)
		for _, name := range []string{"laptop", "desktop"} {
			await(ctx, t, w.daemons[name], func(s *ipnstate.Status) bool {
				p := peer(s, "db")
				return p != nil && p.Online && len(p.SSH_HostKeys) > 0
			})
		}
		const ask = "echo I am $(id -un)"
		w.ssh(ctx, "laptop", visitor+"@db", ask).begins(t, visitor)
		w.ssh(ctx, "laptop", "daemon@db", ask).isRefused(t, byPolicy)
		w.ssh(ctx, "desktop", visitor+"@db", ask).isRefused(t, byPolicy)
		w.ssh(ctx, "desktop", "root@db", ask).isRefused(t, byPolicy)

		approved := w.ssh(ctx, "laptop", "root@db", ask)
		code := w.waiting(ctx)
		began := time.Now()
		w.CLI("ssh", "approve", code)
		approved.begins(t, "root")
		t.Logf("the session begins %v after its approval", time.Since(began).Round(time.Millisecond))
		if !strings.Contains(approved.text, "fairlead ssh approve "+code) {
			t.Errorf("the session does not say what it waits for: %s", approved.text)
		}

		rejected := w.ssh(ctx, "laptop", "root@db", ask) // an approval covers one session
		w.CLI("ssh", "reject", w.waiting(ctx), "--reason", "not today")
		rejected.isRefused(t, byAdministrator)
	})
}
