//go:build !race

package clienttest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// counters returns how many packets of confined processes were rejected since the rules were added, and fails
// the test if one was not rejected or a rule is missing.
func counters(t *testing.T) (rejected int) {
	t.Helper()
	out, err := seal(t.Context(), "check")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sent int
	if _, err := fmt.Sscanf(out, "rejected %d sent %d", &rejected, &sent); err != nil {
		t.Fatalf("counters %q: %v", out, err)
	}
	return rejected
}

// TestSealedGroupReachesOnlyLoopback comes first: it tests the rules with a documentation address before a
// client relies on them.
func TestSealedGroupReachesOnlyLoopback(t *testing.T) {
	cred := sealed(t)
	here := httptest.NewServer(http.NotFoundHandler())
	defer here.Close()
	before := counters(t)
	fetch := func(url string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "curl", "--silent", "--noproxy", "*", "--max-time", "5", url)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		return cmd.Run()
	}
	if err := fetch(here.URL); err != nil {
		t.Errorf("loopback is out of reach: %v", err)
	}
	if err := fetch("http://192.0.2.1/"); err == nil {
		t.Error("an address elsewhere was reached")
	}
	if after := counters(t); after <= before {
		t.Errorf("rejected packets: %d before, %d after", before, after)
	}
}

// A client that cannot resolve the name of its server asks public DNS servers
// and the vendor's relays.
func TestClientWithoutItsServerSendsNothingElsewhere(t *testing.T) {
	d := Start(t, Options{})
	before := counters(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, code := d.CLI(ctx, "up", "--login-server=http://control.invalid", "--auth-key=key", "--timeout=2s")
	if code == 0 {
		t.Error("the client is up without a server")
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := poll(limit, func() error {
		if counters(t) == before {
			return fmt.Errorf("nothing was rejected: the client never looked for its server, or not under the group\n%s", d.Log())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
