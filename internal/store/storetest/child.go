package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const childEnv = "STORETEST_CHILD"

// Child turns this process into a writer that will be killed, if the suite started it for that purpose, and
// then does not return. TestMain calls it first; open opens the database that Engine.Spec names.
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
	case "open":
		if err := s.Close(); err != nil {
			fmt.Println("error", err)
		}
	case "inside":
		err := s.Lock(ctx, 0, Batch(), func(tx store.Tx) error {
			for range 5 {
				if _, err := tx.Append(nextCommand(tx.Head() + 1)); err != nil {
					return err
				}
			}
			fmt.Println("inside")
			_, err := os.Stdin.Read(make([]byte, 1)) // until it is killed or told to continue
			return err
		})
		fmt.Println("left", err)
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

// OpenElsewhere opens and closes a database in another process, which runs as the user with this id, and
// returns the error from there.
func OpenElsewhere(t testing.TB, spec string, uid int) string {
	t.Helper()
	// The path of the test binary may not be accessible to that user.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=open "+spec)
	if uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "error "))
}

// process is this test binary, started again as a writer.
type process struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func child(t *testing.T, e Engine, job string) process {
	t.Helper()
	p := process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), childEnv+"="+job+" "+e.Spec)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p
}

func (p process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.Wait() // always "signal: killed"
}

// says fails the test unless the next line starts with want.
func (p process) says(t *testing.T, want string) {
	t.Helper()
	if !p.out.Scan() || !strings.HasPrefix(p.out.Text(), want) {
		t.Fatalf("child says %q, want %q", p.out.Text(), want)
	}
}

func killedInside(t *testing.T, e Engine) {
	writer := child(t, e, "inside")
	writer.says(t, "inside")
	writer.kill(t)
	s := e.Open(t)
	start := time.Now()
	revs, err := appendNext(t.Context(), s, 0, 1)
	if err != nil || revs[0] != 1 {
		t.Fatalf("after the kill: revision %v (%v)", revs, err)
	}
	historyAgrees(t, s, 1)
	if waited := time.Since(start); waited > 3*time.Second {
		t.Fatalf("a dead writer held the lock for %v", waited)
	}
}

// stoppedInside checks that a process that is stopped inside Lock, for any length of time, loses the lock
// before others give up, and notices that when it continues.
func stoppedInside(t *testing.T, e Engine) {
	if !e.Shared {
		return // no other process is kept waiting
	}
	s := e.Open(t)
	writer := child(t, e, "inside")
	writer.says(t, "inside")
	writer.signal(t, syscall.SIGSTOP)
	start := time.Now()
	if _, err := appendNext(t.Context(), s, 0, 1); err != nil {
		t.Fatalf("beside a stopped writer: %v", err)
	}
	if waited := time.Since(start); waited > 4500*time.Millisecond {
		t.Errorf("a stopped writer held the lock for %v", waited)
	}
	writer.signal(t, syscall.SIGCONT)
	if _, err := fmt.Fprintln(writer.in); err != nil {
		t.Fatal(err)
	}
	writer.says(t, "left "+store.ErrUnavailable.Error())
	_ = writer.Wait() // its output has been read already
	if snap, err := s.Load(t.Context()); err != nil || snap.Rev != 1 || snap.Users.Len() != 1 {
		t.Fatalf("found revision %d with %d users (%v)", snap.Rev, snap.Users.Len(), err)
	}
}

func killedAnywhere(t *testing.T, e Engine) {
	r := rand.New(rand.NewPCG(4, 4))
	acked := mesh.Revision(0)
	for range 5 {
		writer := child(t, e, "anywhere")
		n := 5 + r.IntN(20)
		for i := 0; i < n && writer.out.Scan(); i++ {
			if _, err := fmt.Sscan(writer.out.Text(), &acked); err != nil {
				t.Fatalf("child says %q", writer.out.Text())
			}
		}
		writer.kill(t)
		for writer.out.Scan() { // lines that it wrote before it was killed count too
			if _, err := fmt.Sscan(writer.out.Text(), &acked); err != nil {
				break // a truncated line
			}
		}
		s := e.Open(t)
		snap, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if snap.Rev < acked || snap.Rev%5 != 0 || snap.Users.Len() != int(snap.Rev) {
			t.Fatalf("acknowledged %d, found revision %d with %d users", acked, snap.Rev, snap.Users.Len())
		}
		if list, err := s.Tail(t.Context(), store.Point{Rev: 0}); err != nil || len(list) != int(snap.Rev) {
			t.Fatalf("log has %d entries at revision %d (%v)", len(list), snap.Rev, err)
		}
		historyAgrees(t, s, snap.Rev)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
