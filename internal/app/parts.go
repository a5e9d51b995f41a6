package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"tailscale.com/types/key"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/balance"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/fence"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/passkey"
	"github.com/fairlead-mesh/fairlead/internal/presence"
	"github.com/fairlead-mesh/fairlead/internal/probe"
	"github.com/fairlead-mesh/fairlead/internal/recheck"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/relaylink"
	"github.com/fairlead-mesh/fairlead/internal/secrets"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/stream"
	"github.com/fairlead-mesh/fairlead/internal/sweep"
	"github.com/fairlead-mesh/fairlead/internal/webhook"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// parts are the components of the server besides the ledger.
type parts struct {
	keys     *secrets.Keys
	control  *control.Service
	presence *presence.Tracker
	hub      *stream.Hub
	clients  *wire.Server
	webhooks *webhook.Sender
	fence    *fence.Fence
	balancer *balance.Balancer
	relay    *relay.Server // nil if it is disabled
	meshed   *embeddedMesh // nil without a relay
	// providers are where people sign in.
	providers []*oidc.Provider
	rechecks  *recheck.Loop
	// public and local are the handlers of the listeners.
	public, local http.Handler
	routes        []string // patterns of public, besides the operations of the API
	loops         []func(context.Context) error
	url           atomic.Pointer[string] // where other replicas reach this one
}

// listen opens the sockets that are not HTTP listeners.
func (p *parts) listen() error {
	if p.relay == nil {
		return nil
	}
	return p.relay.Listen()
}

// pace returns how often streams are woken, depending on their number. There are none before the parts are
// built.
func (s *service) pace() time.Duration {
	if p := s.parts.Load(); p != nil {
		return p.hub.Pace()
	}
	return 0
}

// fill adds the data of the parts to a heartbeat.
func (s *service) fill(r *store.Report) {
	p := s.parts.Load()
	if p == nil {
		return
	}
	if url := p.url.Load(); url != nil {
		r.URL = *url
	}
	r.Database = s.database.Host()
	r.Held, r.Draining = p.presence.StreamCount(), p.balancer.Draining()
	r.NoiseKey = p.keys.Stored()
	if p.meshed != nil {
		r.Relay = &p.meshed.own
	}
	r.Logins = p.control.Logins.Waiting()
	r.SSH = p.control.SSH.Waiting()
	r.PolicyHash, r.RecordsHash = p.control.PolicyFile.Hash(), p.control.RecordsFile.Hash()
	r.Facts, r.Uses, r.SessionUses = p.control.Observations.Unsaved(store.MaxSeen)
}

// build builds the parts. It needs a running ledger, because shared secrets are created by a commit.
//
// long: it builds each part once, in order
func (s *service) build(ctx context.Context) (*parts, error) {
	c := s.Config
	keys, err := secrets.Open(ctx, secrets.Config{
		Ledger: s.ledger, Log: s.log, KeyFile: c.SecretsKeyFile, NoisePath: c.Noise.PrivateKeyPath, GiveUpLost: s.NewKey,
	})
	if err != nil {
		return nil, err
	}
	p, hooks := &parts{keys: keys}, identity.NewWebhookSecrets(keys.Secrets)
	if p.providers, err = s.newProviders(); err != nil {
		return nil, err
	}
	verifier, err := passkey.New(c.ServerURL)
	p.control = control.New(control.Config{
		Ledger: s.ledger, History: s.history, Log: s.log, Registerer: s.registry,
		PrefixV4: c.Prefixes.V4, PrefixV6: c.Prefixes.V6, RandomAddresses: c.Prefixes.Allocation == "random",
		NodeExpiry: c.Node.Expiry, NodeApproval: c.Node.ApprovalRequired, UserApproval: c.OIDC.UserApprovalRequired, Quotas: control.Quotas{NodesPerUser: c.Limits.NodesPerUser, NodesPerKey: c.Limits.NodesPerKey}, Logins: identity.NewLoginSealer(keys.Secrets), ServerURL: c.ServerURL, PasskeysErr: err,
		SessionCodes: identity.NewCookieSealer(keys.Secrets), SessionExpiry: c.OIDC.SessionExpiry, RefreshTokens: identity.NewTokenSealer(keys.Secrets), Recheck: recheckIntervals(c.OIDC),
		PolicyFile: policyFile(c.Policy), RecordsFile: c.DNS.ExtraRecordsPath, Webhooks: hooks, Keys: keys, LocalWebhooks: c.Webhooks.AllowLocal, Roles: roleRules(c.OIDC), ProviderGroups: len(p.providers) > 0,
		Deliver: func(ctx context.Context, w *mesh.Webhook, row history.AuditRow) control.WebhookAnswer {
			return p.webhooks.Deliver(ctx, w, row)
		},
	})
	p.webhooks = webhook.New(webhook.Config{
		Ledger: s.ledger, Webhooks: p.control.Webhooks, History: p.control.History, Log: s.log, Registerer: s.registry, Secret: hooks.Secret, Encode: api.EncodeWebhookEvent,
		Version: s.Build.Version, AllowLocal: c.Webhooks.AllowLocal,
	})
	p.rechecks = recheck.New(recheck.Config{Rechecks: p.control.Rechecks, Providers: p.providers, Log: s.log, Registerer: s.registry})
	p.presence = presence.New(presence.Config{Ledger: s.ledger, Log: s.log, Registerer: s.registry})
	p.fence, p.balancer = s.newFence(identity.NewReplicaKey(keys.Secrets)), s.newBalancer(p.presence)
	p.hub = stream.New(stream.Config{Ledger: s.ledger, Presence: p.presence, Log: s.log, Registerer: s.registry, ServerURL: c.ServerURL})
	prober := probe.New(probe.Config{
		Ledger: s.ledger, Log: s.log, Registerer: s.registry,
		Interval: c.Node.Routes.ProbeInterval, Timeout: c.Node.Routes.ProbeTimeout,
		Ask: func(id mesh.NodeID, token string) bool { return p.hub.Ask(id, wire.PingURL(c.ServerURL, token)) },
	})
	p.clients = wire.New(wire.Config{
		Joins: p.control.Joins, Logins: p.control.Logins, Sessions: p.control.Sessions, Rechecks: p.control.Rechecks, Clients: p.control.Clients, Observations: p.control.Observations, SSH: p.control.SSH, Passkeys: p.control.Passkeys, PasskeyVerifier: verifier,
		Ledger: s.ledger, Streams: p.hub, Noise: keys.Noise, Secrets: keys.Secrets, ServerURL: c.ServerURL, Providers: p.providers, ConsoleURLs: consoleURLs(c),
		TrustedProxies: c.TrustedProxies, Log: s.log, Registerer: s.registry, Leave: p.fence.Leave, Move: p.balancer.Next, Closed: p.fence.Closed, Elsewhere: s.leaving, Answered: prober.Answered,
	})
	sweeper := sweep.New(sweep.Config{
		Ledger: s.ledger, Log: s.log, Registerer: s.registry, Interval: c.NodeUpdateCheckInterval, Inactivity: c.Node.Ephemeral.InactivityTimeout,
	})
	p.loops = append(settingLoops(p.control, c),
		p.fence.Run,
		keys.Run,
		p.clients.Run,
		p.hub.Run,
		sweeper.Run,
		prober.Run,
		p.control.PolicyWatch.RevertUnconfirmed,
		p.control.PolicyWatch.RunTests,
		p.control.Observations.Save,
		p.control.Clients.SaveReports,
		s.followHealth,
	)
	p.loops = append(p.loops, p.providerLoops()...)
	if policyFile(c.Policy) != "" {
		if err := p.control.PolicyFile.Load(ctx); err != nil {
			return nil, err
		}
		p.loops = append(p.loops, func(ctx context.Context) error { return p.control.PolicyFile.Follow(ctx, s.Reload) })
	}
	routes := p.clients.Routes()
	routes["GET "+fence.Path] = p.fence
	if err := s.buildRelay(p, routes, identity.NewRelayMeshKeys(keys.Secrets)); err != nil {
		return nil, err
	}
	server := api.New(api.Config{
		Control: p.control, Ledger: s.ledger, Log: s.log, Registerer: s.registry, Version: s.version(), Health: s.health, Ready: s.ready, Closed: p.fence.Closed, Balancer: p.balancer,
		Facts:    openapi.ServerState{URL: c.ServerURL, StartedAt: time.Now(), Database: openapi.ServerStateDatabase(c.Database.Type)},
		Checks:   s.checksNow,
		Cluster:  s.watchCluster(p),
		Document: apispec.Document, SignIn: s.signInChoices(p.providers), TrustedProxies: c.TrustedProxies,
	})
	p.routes = slices.Sorted(maps.Keys(routes))
	p.public, p.local = s.guard.Handler(server.Handler(routes)), server.LocalHandler(peer)
	s.parts.Store(p)
	return p, nil
}

const (
	noRelay    = "no relay configured: devices cannot connect. Set derp.server.enabled, derp.urls or derp.paths, or run fairlead relay"
	noRelayMap = "no relay map loaded from derp.urls or derp.paths: devices cannot connect. The log says why; search for \"relay map not updated\""
)

// buildRelay adds the embedded relay, the updater for maps of other relays, and what relays that run as processes of their
// own connect to.
func (s *service) buildRelay(p *parts, routes map[string]http.Handler, meshKeys *identity.RelayMeshKeys) error {
	c := s.Config.DERP
	maps.Copy(routes, relaylink.New(relaylink.Config{
		Relays: p.control.Relays, Ledger: s.ledger, MeshKey: meshKeys.Key, Closed: p.fence.Closed, Log: s.log,
	}).Routes())
	p.loops = append(p.loops, relaylink.NewProber(relaylink.ProberConfig{
		Relays: p.control.Relays, Ledger: s.ledger, Log: s.log, Registerer: s.registry,
	}).Run)
	frequency := c.UpdateFrequency
	if !c.AutoUpdateEnabled {
		frequency = 0
	}
	updater, err := relay.NewUpdater(relay.UpdaterConfig{
		Source: &relay.Source{URLs: c.URLs, Paths: c.Paths}, Frequency: frequency,
		Current: func() []byte {
			v, _ := s.ledger.World().RelaySettings()
			return []byte(v)
		},
		Publish: func(ctx context.Context, m []byte) error {
			p.control.Relays.Configure(ctx, string(m))
			return ctx.Err()
		},
		Log: s.log, Registerer: s.registry,
	})
	if err != nil {
		return err
	}
	p.loops = append(p.loops, updater.Run)
	if len(c.URLs)+len(c.Paths) == 0 { // a map from an earlier configuration is removed
		p.loops = append(p.loops, func(ctx context.Context) error {
			p.control.Relays.Configure(ctx, "")
			return nil
		})
	}
	if !c.Server.Enabled {
		return relay.RegisterZero(s.registry)
	}
	own, err := relay.LoadKey(c.Server.PrivateKeyPath)
	if err != nil {
		return fmt.Errorf("derp.server.private_key_path: %w", err)
	}
	p.meshed = &embeddedMesh{service: s, own: store.ReplicaRelay{Region: c.Server.RegionID, Key: own.Public()}}
	config := relay.ServerConfig{
		Key: own, STUNListenAddr: c.Server.STUNListenAddr, TrustedProxies: s.Config.TrustedProxies, Log: s.log, Registerer: s.registry, MeshKey: meshKeys.Key(c.Server.RegionID),
	}
	config.Known = func(k key.NodePublic) bool { return p.meshed.isPeer(k) || p.control.Clients.Known(k) }
	config.Verify = func(ctx context.Context, k key.NodePublic) bool {
		return p.meshed.isPeer(k) || p.control.Clients.AdmitToRelay(ctx, k) == nil
	}
	if !c.Server.VerifyClients { // it then only distinguishes nodes from strangers, and must not wait for the database
		config.ServeAll = true
		config.Verify = func(_ context.Context, k key.NodePublic) bool { return config.Known(k) }
	}
	if p.relay, err = relay.NewServer(config); err != nil {
		return err
	}
	region, err := s.region()
	if err != nil {
		return err
	}
	h := p.relay.Handler()
	routes["/derp"], routes["/derp/"] = h, h
	p.loops = append(p.loops, p.relay.Run,
		func(ctx context.Context) error { return p.meshed.run(ctx, p.relay) },
		func(ctx context.Context) error { return p.control.Relays.Publish(ctx, c.Server.RegionID, region) })
	return nil
}

// region returns the embedded relay's entry in the relay map. Its host is that of the server.
func (s *service) region() (json.RawMessage, error) {
	c := s.Config.DERP.Server
	u, err := url.Parse(s.Config.ServerURL)
	if err != nil {
		return nil, fmt.Errorf("server_url: %w", err)
	}
	r := relay.RegionConfig{
		ID: c.RegionID, Code: c.RegionCode, Name: c.RegionName, HostName: u.Hostname(), STUNPort: c.STUNPublicPort, IPv4: c.IPv4, IPv6: c.IPv6,
	}
	if r.DERPPort, _ = strconv.Atoi(u.Port()); r.DERPPort == 0 && u.Scheme == "http" {
		r.DERPPort = 80
	}
	if _, port, err := net.SplitHostPort(c.STUNListenAddr); err == nil && r.STUNPort == 0 {
		r.STUNPort, _ = strconv.Atoi(port) // validated with the configuration
	}
	return json.Marshal(relay.Region(r))
}
