// Package app is the composition root: it builds every part from the configuration, starts them, and stops
// them in order. Only the command and tests import it, and it makes no decisions of its own.
//
// It starts the Run methods of all parts in one group and waits for them. Goroutines that a part starts itself
// end before its Run method, or its Close method, returns.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Options configures Run. Config is required.
type Options struct {
	Config *config.Config
	Build  Build
	// Log receives the log lines; without it nothing is logged.
	Log io.Writer
	// DrainDelay is how long the server keeps serving after it has announced its shutdown, so that load
	// balancers can switch to another replica; it defaults to a second.
	DrainDelay time.Duration
	// NewKey creates a new key if the one that clients know is lost, instead of refusing to start.
	NewKey bool
	// Reload, if set, triggers reloading the policy file.
	Reload <-chan os.Signal
	// Ready, if set, is called once with the addresses in use.
	Ready func(Addrs)
}

// Build identifies this binary.
type Build struct{ Version, Commit, Time string }

// Addrs are the addresses the server listens on.
type Addrs struct {
	API, Metrics, Socket string
	// Routes are the patterns that the public listener serves besides the operations of the API.
	Routes []string
}

const (
	stopTimeout = 15 * time.Second
	lastSave    = 2 * time.Second // time limit for saving at shutdown, which is best effort
	drainDelay  = time.Second
)

// service holds what the parts share.
type service struct {
	Options
	log      *slog.Logger
	registry *prometheus.Registry
	ledger   *ledger.Ledger
	history  history.Reader
	database database
	guard    *guard.Guard
	// certificate is nil if a proxy terminates TLS.
	certificate certificate
	draining    atomic.Bool
	checks      checks
	risks       *risks        // nil with SQLite
	stale       func() string // nil with SQLite
	parts       atomic.Pointer[parts]
}

// Run builds the server, serves until ctx ends, and stops: it announces the shutdown, lets requests finish,
// and only then stops the ledger and closes the database. Each error is one line that says what to do. Being
// stopped, even during startup, is not an error.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.DrainDelay == 0 {
		o.DrainDelay = drainDelay
	}
	s := &service{Options: o, log: newLogger(o.Log, o.Config.Log), registry: prometheus.NewRegistry()}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, w := range o.Config.Warnings {
		s.log.Warn("configuration warning", "problem", w.String())
	}
	if err := s.limit(); err != nil {
		return err
	}
	err := s.run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return oneLine(err)
}

func (s *service) run(ctx context.Context) (err error) {
	st, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := st.Close(); err != nil {
			s.log.Warn("failed to close database", "error", err)
		}
	}()
	if err := s.openLedger(ctx, st); err != nil {
		return err
	}
	// The loops outlive the listeners, so that a request in progress can still commit.
	loops, endLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer endLoops()
	g, failed := errgroup.WithContext(loops)
	for _, loop := range []func(context.Context) error{s.ledger.Run, s.ledger.SendHeartbeats, s.ledger.DetectPauses, st.Watch} {
		g.Go(func() error { return loop(failed) })
	}
	err = s.start(ctx, g, failed)
	endLoops()
	return cmp.Or(err, g.Wait())
}

// start builds all parts and serves until ctx ends or a loop fails.
func (s *service) start(ctx context.Context, g *errgroup.Group, failed context.Context) error {
	p, err := s.build(ctx)
	if err != nil {
		return err
	}
	ls, err := s.listen()
	if err != nil {
		return err
	}
	defer ls.close()
	if err := p.listen(); err != nil {
		return err
	}
	own := replicaURL(ctx, s.Config, ls.api.Addr())
	p.url.Store(&own)
	s.ledger.Cluster().Announce() // so that a replica that loses the database knows which others to ask
	return s.serve(ctx, g, failed, ls, p)
}

// database is the interface of both engines.
type database interface {
	store.Store
	history.Store
	Host() string
	Describe(context.Context) (store.Database, []store.Report, error)
}

func (s *service) openStore(ctx context.Context) (database, error) {
	db := s.Config.Database
	if db.Type == "sqlite" {
		return sqlstore.OpenSQLite(ctx, db.SQLite.Path, s.registry)
	}
	p := db.Postgres
	st, err := sqlstore.OpenPostgres(ctx, sqlstore.PostgresConfig{
		Host: strings.Join(p.Hosts, ","), Port: p.Port, Name: p.Name, User: p.User, Pass: string(p.Pass), SSLMode: p.SSLMode,
		MaxOpenConns: p.MaxOpenConns, MaxIdleConns: p.MaxIdleConns, MaxIdleTime: p.ConnMaxIdleTime, Log: s.log,
	}, s.registry)
	if err != nil {
		return nil, err
	}
	s.risks, s.stale = &risks{read: st.Risks, log: s.log}, st.Stale
	return st, nil
}

func (s *service) openLedger(ctx context.Context, st database) (err error) {
	s.history, s.database = st, st
	s.ledger, err = ledger.Open(ctx, ledger.Config{
		Store: st, Log: s.log, Registerer: s.registry, Describe: api.Describe, History: st, Retention: s.Config.History.Retention,
		Reserved: mesh.ReservedFor(s.Config.Prefixes.V4, s.Config.Prefixes.V6),
		Self:     store.Report{Name: replicaName(s.Config), Version: s.Build.Version, ConfigHash: s.Config.Hash()}, Pace: s.pace, Fill: s.fill,
	})
	return err
}

func (s *service) version() openapi.Version {
	return openapi.Version{
		Version: s.Config.APICompatVersion, Product: "Fairlead", ProductVersion: s.Build.Version,
		ServerURL: s.Config.ServerURL, Commit: s.Build.Commit, BuildTime: s.Build.Time,
		Dirty: strings.HasSuffix(s.Build.Version, "-dirty"),
		Go:    openapi.GoVersion{Version: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
	}
}

// serve runs the listeners and the loops of the parts until ctx ends or one of
// them fails.
func (s *service) serve(ctx context.Context, g *errgroup.Group, failed context.Context, ls *listeners, p *parts) error {
	type serving struct {
		net.Listener
		http.Handler
	}
	all := []serving{{ls.api, p.public}, {ls.socket, p.local}, {ls.metrics, s.metricsHandler()}}
	if c, ok := s.certificate.(*issued); ok && ls.redirect != nil {
		all = append(all, serving{ls.redirect, c.issuer})
	}
	var servers []*http.Server
	for _, l := range all {
		server := newServer(l.Handler, s.log)
		servers = append(servers, server)
		g.Go(func() error {
			if err := server.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	// A replica that shuts down stops reporting presence, because its nodes will be on other replicas in a
	// moment. For the same reason it stops sending webhooks.
	present, leave := context.WithCancel(failed)
	defer leave()
	g.Go(func() error { return p.presence.Run(present) })
	g.Go(func() error { return p.webhooks.Run(present) })
	if s.certificate != nil {
		p.loops = append(p.loops, s.certificate.Run)
	}
	if s.risks != nil {
		p.loops = append(p.loops, s.risks.Run)
	}
	for _, loop := range p.loops {
		g.Go(func() error { return loop(failed) })
	}
	ledger.LogPolicy(s.log, s.ledger.World())
	s.log.Info("fairlead is ready", "version", s.Build.Version, "api", ls.addrs().API, "metrics", ls.addrs().Metrics, "socket", ls.addrs().Socket,
		"database", s.Config.Database.Type, "replica", s.ledger.Cluster().Self().ID, "rev", s.ledger.World().Rev)
	if !s.Config.DERP.Server.Enabled && s.missingRelay() == noRelay {
		s.log.Warn("no relay configured", "remedy", noRelay)
	}
	notify("READY=1")
	if s.Ready != nil {
		addrs := ls.addrs()
		addrs.Routes = p.routes
		s.Ready(addrs)
	}
	select {
	case <-ctx.Done():
		s.drain(failed)
	case <-failed.Done():
	}
	leave()
	s.shutdown(servers, p)
	s.saveObserved(failed, p)
	s.log.Info("fairlead stopped")
	return nil
}

// drain announces the shutdown and gives load balancers time to notice.
func (s *service) drain(failed context.Context) {
	s.log.Info("shutting down")
	s.draining.Store(true)
	notify("STOPPING=1")
	select {
	case <-time.After(s.DrainDelay):
	case <-failed.Done():
	}
}

// saveObserved saves the last observations, within a time that process supervisors tolerate.
func (s *service) saveObserved(failed context.Context, p *parts) {
	ctx, cancel := context.WithTimeout(failed, lastSave)
	defer cancel()
	if err := p.control.Clients.SaveAllReports(ctx); err != nil { // reports that arrived while clients were disconnecting
		s.log.Warn("delayed node reports lost", "error", err)
	}
	if err := p.control.Observations.SaveAll(ctx); err != nil {
		s.log.Warn("node measurements and key usage of the last ten minutes lost", "error", err)
	}
}

// saveReports commits pending reports while their nodes are still connected: once a node has moved to another
// replica, its report here is outdated.
func (s *service) saveReports(ctx context.Context, p *parts) {
	ctx, cancel := context.WithTimeout(ctx, lastSave)
	defer cancel()
	if err := p.control.Clients.SaveAllReports(ctx); err != nil {
		s.log.Warn("delayed node reports not saved yet", "error", err)
	}
}

func (s *service) shutdown(servers []*http.Server, p *parts) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, server := range servers {
		if err := server.Shutdown(ctx); err != nil {
			s.log.Warn("aborting requests that did not finish in time", "error", err)
			_ = server.Close()
		}
	}
	s.saveReports(ctx, p)
	p.clients.Drain(ctx) // only now, because they reconnect at once
}

// The parts of the server that /health reports on.
const (
	checkService  = api.CheckService
	checkDatabase = "database"
	checkClock    = "clock"
	checkRelay    = "relay"
	checkPolicy   = "policy"
	checkReplicas = "replicas"
	checkConns    = "connections"
	checkCert     = "certificate"
	checkIdentity = "identity"
	checkDNS      = "dns"
)

// Texts that explain to probes why this replica is not ready.
const (
	stopping = "the server is shutting down"
	drained  = "this replica is being drained; to end that, run: fairlead drain --cancel"
	fenced   = "this replica cannot reach the database, but another replica can; it rejects devices and API keys"
)

// health returns the health of the server. It is called often, also by strangers, so it does no I/O.
func (s *service) health() openapi.Health {
	h := openapi.Health{Status: openapi.HealthStatusPass, Checks: map[string][]openapi.HealthCheck{}}
	report := func(part string, status openapi.HealthCheckStatus, output string) {
		h.Checks[part] = append(h.Checks[part], openapi.HealthCheck{Status: status, Output: output})
		if status == openapi.HealthCheckStatusFail {
			h.Status = openapi.HealthStatusFail
		}
	}
	if err := s.ledger.Status().Health(); err != nil {
		report(checkDatabase, openapi.HealthCheckStatusFail, publicText(err))
	}
	if r, lost := s.ledger.Status().Rewound(); lost {
		report(checkDatabase, openapi.HealthCheckStatusWarn, r.String())
	}
	if s.risks != nil {
		for _, text := range s.risks.warnings() {
			report(checkDatabase, openapi.HealthCheckStatusWarn, text)
		}
		if text := s.stale(); text != "" {
			report(checkDatabase, openapi.HealthCheckStatusWarn, text)
		}
	}
	if s.draining.Load() {
		report(checkService, openapi.HealthCheckStatusFail, stopping)
	}
	if e := s.ledger.Status().Clocks(); e != nil {
		status := openapi.HealthCheckStatusWarn
		if e.Refuses() {
			status = openapi.HealthCheckStatusFail
		}
		report(checkClock, status, e.Error())
	}
	if text := s.missingRelay(); text != "" {
		report(checkRelay, openapi.HealthCheckStatusWarn, text)
	}
	if p := s.parts.Load(); p != nil {
		if p.fence.Closed() {
			report(checkReplicas, openapi.HealthCheckStatusFail, fenced)
		}
		if p.balancer.Draining() {
			report(checkService, openapi.HealthCheckStatusWarn, drained)
		}
		for _, text := range p.fence.Warnings() {
			report(checkReplicas, openapi.HealthCheckStatusWarn, text)
		}
		for _, text := range p.keyWarnings() {
			report(checkService, openapi.HealthCheckStatusWarn, text)
		}
		for _, text := range p.control.Relays.Warnings() {
			report(checkRelay, openapi.HealthCheckStatusWarn, text)
		}
		for _, text := range p.control.PolicyWatch.Warnings() {
			report(checkPolicy, openapi.HealthCheckStatusWarn, text)
		}
		for _, text := range p.control.RecordsFile.Warnings() {
			report(checkDNS, openapi.HealthCheckStatusWarn, text)
		}
		for _, text := range p.providerWarnings() {
			report(checkIdentity, openapi.HealthCheckStatusWarn, text)
		}
	}
	if text, failed := s.guard.Problem(); failed {
		report(checkConns, openapi.HealthCheckStatusFail, text)
	} else if text != "" {
		report(checkConns, openapi.HealthCheckStatusWarn, text)
	}
	if s.certificate != nil {
		for _, text := range s.certificate.warnings(time.Now()) {
			report(checkCert, openapi.HealthCheckStatusWarn, text)
		}
	}
	for _, r := range s.ledger.Cluster().Replicas() {
		if r.ConfigHash != s.ledger.Cluster().Self().ConfigHash {
			report(checkReplicas, openapi.HealthCheckStatusWarn, fmt.Sprintf("replica %s has a different configuration; some keys must be the same on all replicas; https://github.com/fairlead-mesh/fairlead/blob/main/docs/configuration.md marks them", r.ID))
		}
	}
	return h
}

// missingRelay says what to do if devices have no relay.
func (s *service) missingRelay() string {
	w := s.ledger.World()
	elsewhere, embedded := w.RelaySettings()
	switch {
	case elsewhere != "" || len(embedded) > 0 || w.Relays.Len() > 0:
		return ""
	case len(s.Config.DERP.URLs)+len(s.Config.DERP.Paths) > 0:
		return noRelayMap
	}
	return noRelay
}

// keyWarnings returns what /health reports about the Noise key.
func (p *parts) keyWarnings() []string {
	list := p.keys.Problems()
	if text := p.control.NoiseKeys.Warning(); text != "" {
		list = append(list, text)
	}
	return list
}

// oneLine joins the lines of an error, so that it fits on one line of a terminal or log.
func oneLine(err error) error {
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
