package relay_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/net/netmon"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

type running struct {
	url     string
	key     key.NodePrivate
	web     *httptest.Server
	metrics *prometheus.Registry
	guard   *prometheus.Registry // metrics of the guard in front of the relay
	log     *waittest.Transcript
	// stop makes Run return and waits for it.
	stop func()
}

// start runs a relay on the loopback address until the test ends.
func start(t testing.TB, c relay.ServerConfig) *running {
	t.Helper()
	r := &running{metrics: prometheus.NewRegistry(), guard: prometheus.NewRegistry(), log: &waittest.Transcript{}}
	r.key = key.NewNode()
	c.Key, c.Registerer = r.key, r.metrics
	c.Log = slog.New(slog.NewTextHandler(r.log, nil))
	s, err := relay.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Config{Unproven: 1000, UnprovenOfOne: 1000, Open: 1000, Log: c.Log, Registerer: r.guard})
	r.web = httptest.NewUnstartedServer(g.Handler(s.Handler()))
	r.web.Listener, r.web.Config.ConnContext = g.Listener(r.web.Listener), guard.WithConn
	r.web.Start()
	t.Cleanup(r.web.Close)
	r.url = r.web.URL + "/derp"
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	r.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(r.stop)
	return r
}

// newServer returns a relay that does not listen yet.
func newServer(t *testing.T, stunAddr string) *relay.Server {
	t.Helper()
	s, err := relay.NewServer(relay.ServerConfig{
		Key: key.NewNode(), STUNListenAddr: stunAddr, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value returns the value of a gauge or counter without labels.
func (r *running) value(t *testing.T, name string) float64 {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// client returns a relay client, the one that Tailscale clients use.
func client(t *testing.T, url string, k key.NodePrivate) *derphttp.Client {
	t.Helper()
	c, err := derphttp.NewClient(k, url, logger.Discard, netmon.NewStatic())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connected returns a client that the relay has accepted.
func connected(t *testing.T, url string, k key.NodePrivate) *derphttp.Client {
	t.Helper()
	c := client(t, url, k)
	if err := served(t, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// served returns an error if the relay does not serve a client. A relay closes a
// rejected connection only after the client believes it is connected.
func served(t *testing.T, c *derphttp.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Connect(ctx); err != nil {
		return err
	}
	m, err := c.Recv()
	if _, ok := m.(derp.ServerInfoMessage); err == nil && !ok {
		t.Fatalf("the first message is a %T", m)
	}
	return err
}

// packet returns the next packet for c.
func packet(t *testing.T, c interface {
	Recv() (derp.ReceivedMessage, error)
},
) derp.ReceivedPacket {
	t.Helper()
	for {
		m, err := c.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := m.(derp.ReceivedPacket); ok {
			return p
		}
	}
}

// eventually polls until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, patience, 5*time.Millisecond, try)
}
