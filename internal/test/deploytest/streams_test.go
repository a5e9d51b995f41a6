//go:build !race

package deploytest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

var hold = flag.Duration("hold", 30*time.Second, "how long a stream must stay open through the proxy")

// streams holds what each side of a client's map stream has counted so far.
type streams struct {
	Asked int // by the client: map poll requests
	Begun int // by the server: full maps sent, one at the start of each stream
	Ended int // by the proxy: client connections that ended
}

var pollsOfClient = regexp.MustCompile(`(?m)^controlclient_map_requests_poll (\d+)$`)

func countStreams(ctx context.Context, s *Stack, d *clienttest.Daemon) (n streams, err error) {
	stdout, stderr, code := d.CLI(ctx, "debug", "metrics")
	polls := pollsOfClient.FindStringSubmatch(stdout)
	if code != 0 || polls == nil {
		return n, fmt.Errorf("the client's metrics are %s%s", stdout, stderr)
	}
	if n.Asked, err = strconv.Atoi(polls[1]); err != nil {
		return n, err
	}
	if n.Begun, err = metric(ctx, s, `mesh_stream_messages_total{kind="full"}`); err != nil {
		return n, err
	}
	log := s.Exec("proxy", "cat", "/var/log/nginx/access.log")
	n.Ended = strings.Count(log, `"POST /ts2021 HTTP/1.1" 101 `)
	return n, nil
}

// metric reads one integer metric from the server.
func metric(ctx context.Context, s *Stack, series string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr("METRICS_PUBLISH")+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := (&http.Client{}).Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("the service has no metric %s", series)
}

// mustCount compares the current counts with the expected ones.
func mustCount(ctx context.Context, t *testing.T, s *Stack, d *clienttest.Daemon, want streams, when string) {
	t.Helper()
	got, err := countStreams(ctx, s, d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s the counts are others (-before +now):\n%s", when, diff)
	}
}

// settle waits until the counts of a new client stop changing, and returns them.
func settle(ctx context.Context, t *testing.T, s *Stack, d *clienttest.Daemon) (n streams) {
	t.Helper()
	same := 0
	eventually(t, patience, func() error {
		before := n
		var err error
		if n, err = countStreams(ctx, s, d); err != nil {
			return err
		}
		if n.Asked == 0 || n != before {
			same = 0
		}
		if same++; same < 5 {
			return fmt.Errorf("the counts were %+v and are %+v", before, n)
		}
		return nil
	})
	return n
}

// rename renames a client's node and waits until the client sees the new name, which it can only
// learn from its stream.
func rename(ctx context.Context, t *testing.T, s *Stack, d *clienttest.Daemon, from, to string) {
	t.Helper()
	s.Exec("fairlead", "fairlead", "nodes", "rename", from, to)
	err := d.Wait(ctx, func(st *ipnstate.Status) bool { return strings.HasPrefix(st.Self.DNSName, to+".") })
	if err != nil {
		t.Fatal(err)
	}
}

// joinByTLS starts a deployment in production mode with a certificate of its own, and a client
// outside that joins it.
func joinByTLS(t *testing.T, name string) (*Stack, *clienttest.Daemon) {
	t.Helper()
	o := newOutside(t)
	a := newAuthority(t)
	s := o.startProduction(a.issue(t, publicName, ""))
	return s, o.join(within(t, patience), o.host(name), publicURL, joinKey(s), a.Root)
}

func TestStreamStaysOpenThroughTheProxy(t *testing.T) {
	t.Parallel()
	s, client := joinByTLS(t, "first")
	ctx := within(t, *hold+2*patience)
	before := settle(ctx, t, s, client)
	began := time.Now()
	timer := time.NewTimer(*hold)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	rename(ctx, t, s, client, "first", "renamed")
	mustCount(ctx, t, s, client, before, fmt.Sprintf("after %v", time.Since(began).Round(time.Second)))
}

func TestReloadKeepsStreamsAndRestartBringsThemBack(t *testing.T) {
	t.Parallel()
	s, client := joinByTLS(t, "first")
	ctx := within(t, 2*patience)
	before := settle(ctx, t, s, client)

	script(t, s, "reload")
	eventually(t, patience, func() error {
		out := s.Exec("proxy", "sh", "-c", `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'`)
		if !strings.Contains(out, "worker process is shutting down") {
			return fmt.Errorf("no old worker waits for its streams to end:\n%s", out)
		}
		return nil
	})
	rename(ctx, t, s, client, "first", "after-reload")
	mustCount(ctx, t, s, client, before, "after a reload")

	script(t, s, "restart")
	eventually(t, patience, func() error {
		now, err := countStreams(ctx, s, client)
		if err == nil && (now.Asked == before.Asked || now.Begun == before.Begun) {
			err = fmt.Errorf("no new stream: before %+v, now %+v", before, now)
		}
		return err
	})
	rename(ctx, t, s, client, "after-reload", "after-restart")
}

// script runs a command of scripts/proxy.sh and fails the test if it fails.
func script(t *testing.T, s *Stack, command string) {
	t.Helper()
	if out, err := s.Run("scripts/proxy.sh", command); err != nil {
		t.Fatalf("proxy.sh %s: %v\n%s", command, err, out)
	}
}
