//go:build !race

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// login is a "tailscale up" without a key, which waits for a person.
type login struct {
	URL, Code string

	wait sync.WaitGroup
	text string // what the command printed; read it only after the wait
	exit int
}

var (
	loginURL  = regexp.MustCompile(`https?://\S+`)
	loginCode = regexp.MustCompile(`\b[0-9A-Z]{4}-[0-9A-Z]{4}\b`)
)

// beginLogin runs "tailscale up", waits for the client's login link and opens the page.
func beginLogin(ctx context.Context, t *testing.T, n network, d *clienttest.Daemon, args ...string) *login {
	t.Helper()
	l := new(login)
	args = append([]string{"up", "--login-server=" + n.URL}, args...)
	l.wait.Go(func() {
		stdout, stderr, exit := d.CLI(ctx, args...)
		l.text, l.exit = stdout+stderr, exit
	})
	t.Cleanup(l.wait.Wait)
	eventually(ctx, t, func() error {
		s, err := d.Status(ctx)
		if err == nil && s.AuthURL == "" {
			err = fmt.Errorf("the client has no login link, its state is %s", s.BackendState)
		}
		if err == nil {
			l.URL = s.AuthURL
		}
		return err
	})
	status, page := browse(ctx, t, l.URL)
	l.Code = loginCode.FindString(page)
	if status != http.StatusOK || l.Code == "" {
		t.Fatalf("the page answers with %d and shows no code: %s", status, page)
	}
	// After the client has received the link, it sends another request and waits.
	eventually(ctx, t, func() error {
		list, err := n.TryCLI(ctx, "auth", "list")
		if err == nil && !strings.Contains(list, l.Code) {
			err = fmt.Errorf("the device that waits is not listed: %s", list)
		}
		return err
	})
	return l
}

// end waits until the command has exited.
func (l *login) end() (text string, exit int) {
	l.wait.Wait()
	return l.text, l.exit
}

func browse(ctx context.Context, t *testing.T, url string) (status int, page string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String()
}

func TestApprovedLoginFinishesUp(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		d := clienttest.Start(t, clienttest.Options{Version: version})
		l := beginLogin(ctx, t, n, d, "--hostname=laptop")
		n.CLI("auth", "approve", l.Code, "--user", "alice")
		text, exit := l.end()
		if printed := loginURL.FindString(text); exit != 0 || printed != l.URL || !strings.Contains(text, "Success.") {
			t.Errorf("the command ends with code %d and says: %s", exit, text)
		}
		awaitState(ctx, t, d, "Running")
		if user := n.nodes(ctx)["laptop"].User.Name; user != "alice" {
			t.Errorf("the node belongs to %q", user)
		}
	})
}

func TestRejectedLoginShowsTheReason(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		d := clienttest.Start(t, clienttest.Options{Version: version})
		l := beginLogin(ctx, t, n, d)
		n.CLI("auth", "reject", l.Code, "--reason", "ask the office first")
		if text, exit := l.end(); exit != 1 || !strings.Contains(text, "Node registration rejected: ask the office first") {
			t.Errorf("the command ends with code %d and says: %s", exit, text)
		}
		if _, page := browse(ctx, t, l.URL); !strings.Contains(page, "ask the office first") {
			t.Errorf("the page does not show the reason: %s", page)
		}
		if got := n.nodes(ctx); len(got) != 0 {
			t.Errorf("a rejected client has become a node: %v", got)
		}
	})
}

func TestLoginOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		d := clienttest.Start(t, clienttest.Options{Version: version})
		l := beginLogin(ctx, t, n, d)
		n.Kill()
		n.Resume()
		if status, page := browse(ctx, t, l.URL); status != http.StatusOK || !strings.Contains(page, l.Code) {
			t.Errorf("after the restart the page answers with %d: %s", status, page)
		}
		// The link works before the client polls again; the code works only after that.
		n.CLI("auth", "approve", l.URL, "--user", "alice")
		if text, exit := l.end(); exit != 0 {
			t.Errorf("the command ends with code %d and says: %s", exit, text)
		}
		awaitState(ctx, t, d, "Running")
	})
}
