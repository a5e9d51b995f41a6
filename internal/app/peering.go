package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// peering holds the connections of a relay to the other relays of its region. It is not safe for concurrent use.
type peering struct {
	ctx     context.Context //nolint:containedctx // it ends with the connections
	cancel  context.CancelFunc
	server  *relay.Server
	log     *slog.Logger
	up      *atomic.Int64 // number of connections
	running map[relay.Peer]context.CancelFunc
	loops   sync.WaitGroup
}

// newPeering returns a peering without connections. stop must be called.
func newPeering(ctx context.Context, server *relay.Server, log *slog.Logger, up *atomic.Int64) *peering {
	ctx, cancel := context.WithCancel(ctx)
	return &peering{ctx: ctx, cancel: cancel, server: server, log: log, up: up, running: map[relay.Peer]context.CancelFunc{}}
}

// set opens connections to new peers, and closes those to others.
func (p *peering) set(peers []relay.Peer) {
	for _, peer := range peers {
		if p.running[peer] == nil {
			one, stop := context.WithCancel(p.ctx)
			p.running[peer] = stop
			p.loops.Go(func() { p.run(one, peer) })
		}
	}
	for peer, stop := range p.running {
		if !slices.Contains(peers, peer) {
			stop()
			delete(p.running, peer)
		}
	}
}

// stop closes all connections and waits for that.
func (p *peering) stop() {
	p.cancel()
	p.loops.Wait()
}

func (p *peering) run(ctx context.Context, peer relay.Peer) {
	err := p.server.RunPeer(ctx, peer, func(up bool) {
		if up {
			p.up.Add(1)
			p.log.Info("connected to another relay of the region", "relay", peer.Name)
			return
		}
		p.up.Add(-1)
		if ctx.Err() == nil {
			p.log.Warn("connection to another relay of the region lost", "relay", peer.Name)
		}
	})
	if err != nil {
		p.log.Error("cannot connect to another relay of the region", "relay", peer.Name, "error", err)
	}
}

const peeringTick = 500 * time.Millisecond

// embeddedMesh connects the embedded relay of this replica with those of other replicas in the same region.
type embeddedMesh struct {
	*service
	own     store.ReplicaRelay
	up      atomic.Int64
	sameKey sync.Once
}

// isPeer reports whether a key is that of the embedded relay of another replica in this region.
func (m *embeddedMesh) isPeer(k key.NodePublic) bool {
	return slices.ContainsFunc(m.current(), func(p relay.Peer) bool { return p.Key == k })
}

// current returns the embedded relays of live replicas in this region.
func (m *embeddedMesh) current() (list []relay.Peer) {
	self := m.ledger.Cluster().Self().ID
	for _, r := range m.ledger.Cluster().Replicas() {
		if r.ID == self || r.Relay == nil || r.Relay.Region != m.own.Region || r.Stopped {
			continue
		}
		if own := m.parts.Load(); r.Relay.Key == m.own.Key && own != nil && own.url.Load() != nil && *own.url.Load() != r.URL {
			m.sameKey.Do(func() {
				m.log.Error("another replica has the same relay key, so that their relays are not connected; give each replica its own derp.server.private_key_path", "replica", r.ID)
			})
		}
		peer, err := m.peer(r.URL)
		if err != nil {
			continue // its URL is not known yet
		}
		peer.Name, peer.Key = string(r.ID), r.Relay.Key
		list = append(list, peer)
	}
	return list
}

// peer returns how to connect to a replica. Its certificate is that of the server, whatever its address is.
func (m *embeddedMesh) peer(at string) (p relay.Peer, err error) {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return p, fmt.Errorf("invalid URL of a replica: %q", at)
	}
	port := u.Port()
	if port == "" {
		if port = "443"; u.Scheme == "http" {
			port = "80"
		}
	}
	host := u.Hostname()
	p.Addr = net.JoinHostPort(host, port)
	if server, err := url.Parse(m.Config.ServerURL); err == nil && u.Scheme == "https" {
		host = server.Hostname()
	}
	p.URL = u.Scheme + "://" + net.JoinHostPort(host, port)
	return p, nil
}

// run keeps a connection to each of the other relays until ctx ends.
func (m *embeddedMesh) run(ctx context.Context, server *relay.Server) error {
	peers := newPeering(ctx, server, m.log, &m.up)
	defer peers.stop()
	return periodic.Run(ctx, peeringTick, func() { peers.set(m.current()) })
}
