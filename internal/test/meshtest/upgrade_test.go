//go:build !race

package meshtest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	olderCommit = flag.String("older", "", "commit from which to upgrade to the binary under test; by default, upgrade to a build of the next release")
	upgrades    = flag.Int("upgrades", 1, "how often replicas are upgraded and rolled back")
)

// twoReleases returns binaries of a release and the one after it, which has two more migrations and another format of
// events. With the flag -older, they are that commit and the current one.
func twoReleases(t *testing.T) (before, after string) {
	t.Helper()
	dir := t.TempDir()
	if *olderCommit == "" {
		next, err := Build(t.Context(), dir, "-tags", "nextrelease")
		if err != nil {
			t.Fatal(err)
		}
		return fairlead, next
	}
	tree := filepath.Join(dir, "tree")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(context.Background(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	git("worktree", "add", "--detach", tree, *olderCommit)
	t.Cleanup(func() { git("worktree", "remove", "--force", tree) })
	before = filepath.Join(dir, "older")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", before, "./cmd/fairlead")
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", *olderCommit, err, out)
	}
	return before, fairlead
}

func TestReplicasOfTwoReleasesWorkTogether(t *testing.T) {
	t.Parallel()
	before, after := twoReleases(t)
	t.Run("upgrade and rollback under load", func(t *testing.T) {
		t.Parallel()
		testRollingUpgrade(t, before, after)
	})
	t.Run("new events wait for the last replica", func(t *testing.T) {
		t.Parallel()
		if *olderCommit != "" {
			t.Skip("only the build of the next release has a feature that no other build has")
		}
		testNewEvents(t, before, after)
	})
}

// testRollingUpgrade replaces the binaries of three replicas one after the other, forth and back, while users are created
// through the balancer.
func testRollingUpgrade(t *testing.T, before, after string) {
	r := startReplicasOf(t, before, pg, 3, nil)
	r.Check(t, "/ready")
	r.servers[0].CLI("users", "create", "alice")
	nodes := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), 20)
	load := startLoad(t, r.URL, r.servers[0].APIKey())
	for range *upgrades {
		for _, step := range []struct{ name, binary string }{{"upgrade", after}, {"rollback", before}} {
			began := time.Now()
			for _, s := range r.servers {
				s.replace(step.binary)
				mustHold(t, patience, len(nodes), r.servers...)
			}
			t.Logf("%s: %v, %v", step.name, time.Since(began).Round(time.Millisecond), load)
		}
	}
	names := load.stop()
	mustHaveUsers(t, r.servers[0], names)
	mustFlow(t, nodes[:5], 1)
	t.Logf("nobody was shown offline for longer than %v", watch(t, time.Second, absence, nodes))
	mustAgree(t, r.servers...)
}

// testNewEvents uses a feature of the next release during and after an upgrade to it.
func testNewEvents(t *testing.T, before, after string) {
	r := startReplicasOf(t, before, pg, 2, nil)
	first, second := r.servers[0], r.servers[1]
	first.CLI("users", "create", "alice")
	n := NewCrowd(t, first.URL).Node("subject")
	if err := n.Register(t.Context(), first.PreAuthKey("alice")); err != nil {
		t.Fatal(err)
	}
	first.replace(after)
	eventually(t, patience, func() error {
		out, err := first.TryCLI(t.Context(), "nodes", "note", "subject", "next: blue")
		if err == nil {
			t.Fatalf("a feature that one replica does not know is used: %s", out)
		}
		if !strings.Contains(out+err.Error(), "needs the newest version on all replicas: upgrade replica") {
			return fmt.Errorf("%s, %w", out, err)
		}
		return nil
	})
	first.CLI("nodes", "note", "subject", "as before") // other changes work

	second.replace(after)
	eventually(t, patience, func() error {
		_, err := first.TryCLI(t.Context(), "nodes", "note", "subject", "next: blue")
		return err
	})
	eventually(t, patience, func() error {
		if out := second.CLI("nodes", "show", "subject"); !strings.Contains(out, "next: blue") {
			return errors.New(out)
		}
		return nil
	})
	// There is no way back now: a replica of the earlier release would lose the note.
	second.Stop()
	second.binary = before
	ctx := within(t, patience)
	cmd := second.command(ctx, "serve")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "too old for the database") {
		t.Errorf("the earlier release starts: %v\n%s", err, out)
	}
	if out := first.CLI("nodes", "show", "subject"); !strings.Contains(out, "next: blue") {
		t.Errorf("the note is lost:\n%s", out)
	}
}

// replace stops the process gracefully and starts another binary with the same configuration and data.
func (s *Server) replace(binary string) {
	s.t.Helper()
	s.Stop()
	s.binary = binary
	s.Resume()
}

// load creates users through a balancer, and retries each request with its idempotency key until it is accepted.
type load struct {
	t        *testing.T
	url, key string
	cancel   context.CancelFunc
	wait     sync.WaitGroup

	mu      sync.Mutex
	created []string      // guarded by mu
	retries int           // guarded by mu
	slowest time.Duration // guarded by mu
}

func startLoad(t *testing.T, url, key string) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, url: url, key: key, cancel: cancel}
	const writers = 4
	for w := range writers {
		l.wait.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.create(fmt.Sprintf("u%d-%d", w, i))
			}
		})
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop returns the names of all users after the last one was accepted.
func (l *load) stop() []string {
	l.cancel()
	l.wait.Wait()
	return l.created
}

func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d users created with %d retries, the slowest in %v", len(l.created), l.retries, l.slowest.Round(time.Millisecond))
}

// create creates a user. It fails the test if retries do not help.
func (l *load) create(name string) {
	began := time.Now()
	for {
		err := l.try(name)
		l.mu.Lock()
		if err == nil {
			l.created, l.slowest = append(l.created, name), max(l.slowest, time.Since(began))
			l.mu.Unlock()
			return
		}
		l.retries++
		l.mu.Unlock()
		if time.Since(began) > patience {
			l.t.Errorf("creating %s: %v", name, err)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (l *load) try(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/api/v1/user", strings.NewReader(fmt.Sprintf(`{"name":%q}`, name)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+l.key)
	req.Header.Set("Idempotency-Key", name)
	req.Close = true
	res, err := new(http.Client).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusOK:
		return nil
	case res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests:
		l.t.Errorf("creating %s: %s: %s", name, res.Status, text) // a retry would not help
	}
	return fmt.Errorf("%s: %s", res.Status, text)
}

// mustHaveUsers waits until a server has exactly these users, and alice.
func mustHaveUsers(t *testing.T, s *Server, names []string) {
	t.Helper()
	eventually(t, patience, func() error {
		text, err := s.API(t.Context(), http.MethodGet, "/api/v1/user", "")
		if err != nil {
			return err
		}
		var list struct {
			Users []struct {
				Name string `json:"name"`
			} `json:"users"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		found := map[string]int{}
		for _, u := range list.Users {
			found[u.Name]++
		}
		for _, name := range append([]string{"alice"}, names...) {
			if found[name] != 1 {
				return fmt.Errorf("there are %d users %s", found[name], name)
			}
			delete(found, name)
		}
		if len(found) > 0 {
			return fmt.Errorf("there are users that were not acknowledged: %v", found)
		}
		return nil
	})
}
