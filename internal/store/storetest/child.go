package storetest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const childEnv = "STORETEST_CHILD"

// Child turns this process into a writer that will be killed, if the suite
// started it for that, and then does not return. TestMain calls it first; open
// opens the database that Engine.Spec names.
func Child(open func(spec string) (store.Store, error)) {
	job, spec, ok := strings.Cut(os.Getenv(childEnv), " ")
	if !ok {
		return
	}
	s, err := open(spec)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx := context.Background()
	switch job {
	case "inside":
		_ = s.Lock(ctx, 0, Batch(), func(tx store.Tx) error {
			for range 5 {
				if _, err := tx.Append(store.Command{Events: user(mesh.UserID(tx.Head() + 1))}); err != nil {
					return err
				}
			}
			fmt.Println("inside")
			select {} // until killed
		})
	case "anywhere":
		for at := mesh.Revision(0); ; {
			revs, err := appendNext(ctx, s, at, 5)
			if err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			at = revs[4]
			fmt.Println(at)
		}
	}
	os.Exit(0)
}

// child starts this test binary again as a writer and returns its output.
func child(t *testing.T, e Engine, job string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+job+" "+e.Spec)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait() // always "signal: killed"
}

func killedInside(t *testing.T, e Engine) {
	cmd, out := child(t, e, "inside")
	if !out.Scan() || out.Text() != "inside" {
		t.Fatalf("child says %q", out.Text())
	}
	kill(t, cmd)
	s := e.Open(t)
	start := time.Now()
	revs, err := appendNext(t.Context(), s, 0, 1)
	if err != nil || revs[0] != 1 {
		t.Fatalf("after the kill: revision %v (%v)", revs, err)
	}
	if waited := time.Since(start); waited > 3*time.Second {
		t.Fatalf("a dead writer held the lock for %v", waited)
	}
}

func killedAnywhere(t *testing.T, e Engine) {
	r := rand.New(rand.NewPCG(4, 4))
	acked := mesh.Revision(0)
	for range 5 {
		cmd, out := child(t, e, "anywhere")
		n := 5 + r.IntN(20)
		for i := 0; i < n && out.Scan(); i++ {
			if _, err := fmt.Sscan(out.Text(), &acked); err != nil {
				t.Fatalf("child says %q", out.Text())
			}
		}
		kill(t, cmd)
		for out.Scan() { // what it had said before it died counts too
			if _, err := fmt.Sscan(out.Text(), &acked); err != nil {
				break // a line cut in the middle
			}
		}
		s := e.Open(t)
		snap, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if snap.Rev < acked || snap.Rev%5 != 0 || snap.UserCount() != int(snap.Rev) {
			t.Fatalf("acknowledged %d, found revision %d with %d users", acked, snap.Rev, snap.UserCount())
		}
		if list, err := s.Tail(t.Context(), 0); err != nil || len(list) != int(snap.Rev) {
			t.Fatalf("log has %d entries at revision %d (%v)", len(list), snap.Rev, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
