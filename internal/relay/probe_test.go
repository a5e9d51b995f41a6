package relay_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// failures returns the checks that failed, and all problems.
func failures(checks []relay.ProbeCheck) (names []string, text string) {
	for _, c := range checks {
		if (c.Problem == "") != (c.Latency > 0) {
			return nil, c.Name + " has a latency and a problem, or neither"
		}
		if c.Problem != "" {
			names = append(names, c.Name)
			text += c.Problem + "\n"
		}
	}
	slices.Sort(names)
	return names, text
}

func TestProbeSaysWhatClientsCannotUse(t *testing.T) {
	t.Parallel()
	stunAddr := netip.MustParseAddrPort(porttest.Addr(t))
	r := start(t, relay.ServerConfig{STUNListenAddr: stunAddr.String()})
	web := strings.TrimSuffix(r.url, "/derp")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return // a server that responds to everything
		}
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	t.Cleanup(other.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(empty.Close)
	good := relay.Target{URL: web, STUNPort: int(stunAddr.Port()), Key: r.key.Public()}
	with := func(change func(*relay.Target)) relay.Target {
		changed := good
		change(&changed)
		return changed
	}
	for name, c := range map[string]struct {
		target relay.Target
		failed string
		says   string
	}{
		"healthy":         {good, "", ""},
		"without STUN":    {with(func(t *relay.Target) { t.STUNPort = -1 }), "", ""},
		"other address":   {with(func(t *relay.Target) { t.Addrs = []netip.Addr{netip.MustParseAddr("127.0.0.1")} }), "", ""},
		"wrong address":   {with(func(t *relay.Target) { t.Addrs = []netip.Addr{netip.MustParseAddr("127.0.0.9")} }), "https,stun", "firewalls"},
		"another key":     {with(func(t *relay.Target) { t.Key = key.NewNode().Public() }), "derp,websocket", "another relay"},
		"no relay":        {with(func(t *relay.Target) { t.URL = other.URL }), "derp,websocket", "something other than a relay"},
		"nothing there":   {with(func(t *relay.Target) { t.URL = gone.URL }), "https", "firewalls"},
		"other paths":     {with(func(t *relay.Target) { t.URL = empty.URL }), "https", "HTTP status 404"},
		"TLS of plain":    {with(func(t *relay.Target) { t.URL = strings.Replace(web, "http:", "https:", 1) }), "https", "does not speak TLS"},
		"unknown host":    {with(func(t *relay.Target) { t.URL = "https://relay.invalid" }), "https,stun", "DNS"},
		"other STUN port": {with(func(t *relay.Target) { t.STUNPort = 1 }), "stun", "--stun-port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, text := failures(relay.Probe(t.Context(), c.target))
			if strings.Join(failed, ",") != c.failed || !strings.Contains(text, c.says) {
				t.Errorf("failed %v, want %s: %s", failed, c.failed, text)
			}
		})
	}
}

// The HTTP client may receive the response before it knows that it has sent the request.
func TestProbeMeasuresAResponseThatIsFasterThanItsRequest(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	respond, measured := make(chan struct{}), make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		first, err := l.Accept()
		if err != nil {
			return
		}
		defer first.Close()
		<-respond
		_, _ = io.WriteString(first, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if second, err := l.Accept(); err == nil { // the next check
			close(measured)
			_ = second.Close()
			_ = l.Close() // nobody accepts more
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	var once sync.Once
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { // they are not sent yet
		once.Do(func() {
			close(respond)
			select {
			case <-measured:
			case <-time.After(patience):
			}
		})
	}})
	checks := relay.Probe(ctx, relay.Target{URL: "http://" + l.Addr().String(), STUNPort: -1})
	if c := checks[0]; c.Problem != "" || c.Latency > patience {
		t.Errorf("latency %v, problem %q", c.Latency, c.Problem)
	}
}
