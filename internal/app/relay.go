package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fairlead-mesh/fairlead/internal/acme"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/relayd"
)

// RelayOptions configures a relay that runs as a process of its own. JoinKey, Server, URL, Listen, StateDir and Log are
// required.
type RelayOptions struct {
	JoinKey string
	Server  string // URL of the server
	URL     string // where clients reach the relay
	Listen  string
	// STUNListen is empty if the relay does not respond to STUN. Clients use STUNPort, which is the port of STUNListen by
	// default.
	STUNListen string
	STUNPort   int
	IPv4, IPv6 netip.Addr
	// Without CertPath and LetsEncrypt, a proxy must terminate TLS.
	CertPath, KeyPath string
	LetsEncrypt       bool
	ACMEDirectory     string
	Email             string
	StateDir          string
	MetricsListen     string
	TrustedProxies    []netip.Prefix
	Verbose           bool
	Log               io.Writer
	Version           string
}

// relayProcess is one run of a relay.
type relayProcess struct {
	RelayOptions
	log         *slog.Logger
	registry    *prometheus.Registry
	certificate certificate // nil if a proxy terminates TLS
	member      *relayd.Member
	server      atomic.Pointer[relay.Server]
	peers       atomic.Int64 // connected relays of the region
}

// errMeshKey means that the relays of the region have a new mesh key.
var errMeshKey = errors.New("the region has a new mesh key")

const (
	// farewell is how long a relay serves its clients after it has said that it stops, so that they can switch to another.
	farewell     = 2 * time.Second
	relayRestart = time.Second
	// relayUnproven is how many connections from one address may be opening at the same time: all devices of a large office
	// do after a relay was restarted. It is the default of the server, too.
	relayUnproven = 6000
)

// RunRelay runs a relay until ctx ends.
func RunRelay(ctx context.Context, o RelayOptions) error {
	level := slog.LevelInfo
	if o.Verbose {
		level = slog.LevelDebug
	}
	log := newLogger(o.Log, config.Log{Level: level})
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w: create it, or choose another one with --state-dir", err)
	}
	for {
		p := &relayProcess{RelayOptions: o, log: log}
		err := p.run(ctx)
		if !errors.Is(err, errMeshKey) || ctx.Err() != nil {
			return err
		}
		log.Info("the mesh key has changed, restarting the relay")
		time.Sleep(relayRestart)
	}
}

func (p *relayProcess) run(ctx context.Context) error {
	key, err := relay.LoadKey(filepath.Join(p.StateDir, "relay.key"))
	if err != nil {
		return err
	}
	p.registry = prometheus.NewRegistry()
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	stunPort, err := p.stunPort()
	if err != nil {
		return err
	}
	if p.certificate, err = p.openCertificate(); err != nil {
		return err
	}
	limits := &service{
		Options: Options{Config: &config.Config{
			TrustedProxies: p.TrustedProxies, Limits: config.Limits{ConnectionsPerNetwork: relayUnproven}, TLSCertPath: p.CertPath, ACME: config.ACME{Hostname: p.acmeHost()},
		}},
		log: p.log, registry: p.registry,
	}
	if err := limits.limit(); err != nil {
		return err
	}
	listener, err := listenTCP("--listen", p.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.member, err = relayd.Open(relayd.Config{
		Server: p.Server, JoinKey: p.JoinKey, StatePath: filepath.Join(p.StateDir, "nodes.json"), Version: p.Version, Log: p.log,
		Removed: func() {
			if s := p.server.Load(); s != nil {
				s.Recheck()
			}
		},
		Report: func() relay.Report {
			r := relay.Report{URL: p.URL, STUNPort: stunPort, IPv4: p.IPv4, IPv6: p.IPv6, Key: key.Public()}
			if s := p.server.Load(); s != nil {
				r.Stats = s.Stats(p.member.IsPeer)
			}
			r.Peers = int(p.peers.Load())
			return r
		},
	})
	if err != nil {
		return err
	}
	defer p.member.Close()
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel(nil)
	start := func(loop func(context.Context) error) {
		loops.Go(func() {
			if err := loop(ctx); err != nil {
				cancel(err)
			}
		})
	}
	start(p.member.Follow)
	start(p.member.Store)
	first, err := p.firstMesh(ctx)
	if err != nil {
		return err
	}
	server, err := relay.NewServer(relay.ServerConfig{
		Key: key, Verify: p.member.Verify, Known: p.member.Known, TrustedProxies: p.TrustedProxies, STUNListenAddr: p.STUNListen, MeshKey: first.Key,
		Log: p.log, Registerer: p.registry,
	})
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	p.server.Store(server)
	return p.serve(ctx, cancel, start, limits.guard, listener, first.Key)
}

// firstMesh waits for the set of nodes, unless it is stored.
func (p *relayProcess) firstMesh(ctx context.Context) (relay.Mesh, error) {
	for {
		m, changed, ok := p.member.Mesh()
		if ok {
			return m, nil
		}
		select {
		case <-ctx.Done():
			return m, context.Cause(ctx)
		case <-changed:
		}
	}
}

// serve serves clients until ctx ends, and a moment longer, so that they can switch to another relay.
func (p *relayProcess) serve(ctx context.Context, cancel context.CancelCauseFunc, start func(func(context.Context) error), g *guard.Guard, l net.Listener, meshKey string) error {
	server := p.server.Load()
	clients, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	h := newServer(g.Handler(p.handler()), p.log)
	guarded := g.Listener(l)
	serving.Go(func() {
		err := server.Run(clients)
		_ = h.Close()
		cancel(err)
	})
	serving.Go(func() {
		var err error
		if p.certificate != nil {
			h.TLSConfig = p.certificate.config()
			err = h.ServeTLS(guarded, "", "")
		} else {
			err = h.Serve(guarded)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	})
	if p.certificate != nil {
		start(p.certificate.Run)
	}
	if p.MetricsListen != "" {
		if err := p.serveMetrics(&serving, clients); err != nil {
			return err
		}
	}
	start(p.member.SendReports)
	start(func(ctx context.Context) error { return p.followMesh(ctx, server, meshKey) })
	p.log.Info("relay started", "listen", l.Addr().String(), "stun", p.STUNListen, "tls", p.certificate != nil)
	<-ctx.Done()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) { // stopped, and SendReports is saying so
		err = nil
		time.Sleep(farewell)
	}
	return err
}

// handler returns the handler of the public listener.
func (p *relayProcess) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range p.server.Load().Routes() {
		mux.HandleFunc(pattern, h)
	}
	mux.HandleFunc("/generate_204", relay.NoContent)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is a relay of a Fairlead network", http.StatusNotFound)
	})
	return mux
}

// followMesh keeps a connection to each of the other relays of the region.
func (p *relayProcess) followMesh(ctx context.Context, server *relay.Server, meshKey string) error {
	peers := newPeering(ctx, server, p.log, &p.peers)
	defer peers.stop()
	for {
		m, changed, _ := p.member.Mesh()
		if m.Key != meshKey {
			return errMeshKey
		}
		peers.set(m.Peers)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (p *relayProcess) serveMetrics(serving *sync.WaitGroup, ctx context.Context) error {
	l, err := listenTCP("--metrics-listen", p.MetricsListen)
	if err != nil {
		return err
	}
	p.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_relay_known_nodes", Help: "Nodes that the relay admits."}, func() float64 {
			n, _ := p.member.Nodes()
			return float64(n)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_relay_server_connected", Help: "Whether the server sends changes to the relay."}, func() float64 {
			if _, connected := p.member.Nodes(); connected {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_relay_peers", Help: "Other relays of the region that the relay is connected to."}, func() float64 {
			return float64(p.peers.Load())
		}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	h := newServer(mux, p.log)
	serving.Go(func() { _ = h.Serve(l) })
	context.AfterFunc(ctx, func() { _ = h.Close() })
	return nil
}

// stunPort returns the port at which clients reach STUN.
func (p *relayProcess) stunPort() (int, error) {
	if p.STUNListen == "" {
		return -1, nil
	}
	if p.STUNPort != 0 {
		return p.STUNPort, nil
	}
	_, text, err := net.SplitHostPort(p.STUNListen)
	if err != nil {
		return 0, fmt.Errorf("--stun-listen %s: %w", p.STUNListen, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("--stun-listen %s: the port must be a number", p.STUNListen)
	}
	return port, nil
}

// acmeHost returns the host of the certificate that the relay obtains itself, if it does.
func (p *relayProcess) acmeHost() string {
	if u, err := url.Parse(p.URL); err == nil && p.LetsEncrypt {
		return u.Hostname()
	}
	return ""
}

func (p *relayProcess) openCertificate() (certificate, error) {
	switch {
	case p.CertPath != "":
		return openCertificate(p.CertPath, p.KeyPath, p.log)
	case p.LetsEncrypt:
		u, err := url.Parse(p.URL)
		if err != nil {
			return nil, fmt.Errorf("--url: %w", err)
		}
		return newIssued(acme.New(acme.Config{
			Directory: p.ACMEDirectory, Email: p.Email, Host: u.Hostname(), Dir: filepath.Join(p.StateDir, "certificates"), UserAgent: "fairlead-relay/" + p.Version,
		}), p.log), nil
	}
	return nil, nil
}
