package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A watched list keeps following the server after it is killed and restarted.
func TestWatchedListFollowsTheServer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		w := start(t, s, nil, "users", "list", "--watch", "--output", "json")
		last := func(users int) func() error {
			return func() error {
				lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
				if got := strings.Count(lines[len(lines)-1], `"name"`); got != users || !strings.HasPrefix(lines[len(lines)-1], "[") {
					return fmt.Errorf("the last of %d lines has %d users, want %d", len(lines), got, users)
				}
				return nil
			}
		}
		eventually(t, last(0))
		mustCommand(t, s, "users", "create", "alice")
		eventually(t, last(1))
		p.kill(t)
		serve(t, s)
		mustCommand(t, s, "users", "create", "bob")
		eventually(t, last(2))
		if err := w.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-w.ended
		if lines := strings.Count(w.out.String(), "\n"); lines != 3 {
			t.Errorf("%d lines for 2 changes:\n%s", lines, w.out)
		}
	})
}
