package app

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/balance"
	"github.com/fairlead-mesh/fairlead/internal/cluster"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/fence"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/presence"
)

// newFence creates the fence of this replica.
func (s *service) newFence(key *identity.ReplicaKey) *fence.Fence {
	return fence.New(fence.Config{
		Self: string(s.ledger.Cluster().Self().ID), Fresh: s.ledger.Status().Freshness, State: s.ledger.Status().State, Peers: s.peers, Key: key, Log: s.log, Registerer: s.registry,
		CutOff: func() bool { return s.ledger.Cluster().Heartbeats().CutOff(time.Now()) },
	})
}

// newBalancer creates the balancer of this replica.
func (s *service) newBalancer(p *presence.Tracker) *balance.Balancer {
	return balance.New(balance.Config{
		Self: string(s.ledger.Cluster().Self().ID), Replicas: s.ledger.Cluster().Replicas, Held: p.StreamCount, Log: s.log,
	})
}

// watchCluster adds the loop that describes the database, and returns what is known of all replicas.
func (s *service) watchCluster(p *parts) func() cluster.State {
	w := cluster.New(cluster.Config{Cluster: s.ledger.Cluster(), Engine: s.Config.Database.Type, Describe: s.database.Describe, Log: s.log})
	p.loops = append(p.loops, w.Run)
	return w.State
}

// peers returns the other replicas as of the last successful heartbeat.
func (s *service) peers() (peers []fence.Peer) {
	self := s.ledger.Cluster().Self().ID
	for _, r := range s.ledger.Cluster().Replicas() {
		if r.ID != self {
			peers = append(peers, fence.Peer{ID: string(r.ID), URL: r.URL})
		}
	}
	return peers
}

// maxReplicaName limits the name of a replica, as in the configuration.
const maxReplicaName = 63

// replicaName returns the configured name of this replica, or the host name.
func replicaName(c *config.Config) string {
	if c.ReplicaName != "" {
		return c.ReplicaName
	}
	name, err := os.Hostname()
	if err != nil {
		return "" // then the ID of the process is its name
	}
	return name[:min(len(name), maxReplicaName)]
}

// lookupLimit limits how long startup waits for the database's name to resolve.
const lookupLimit = 2 * time.Second

// replicaURL returns where other replicas can reach this one's listener: the
// configured URL, or else the listener's address, or else the address from which
// this machine reaches the database, or else any of its addresses.
func replicaURL(ctx context.Context, c *config.Config, listener net.Addr) string {
	if c.ReplicaURL != "" {
		return c.ReplicaURL
	}
	at, err := netip.ParseAddrPort(listener.String())
	if err != nil {
		return ""
	}
	ip := at.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = ownAddr(ctx, c.Database.Postgres)
	}
	scheme := "http"
	if c.ServesTLS() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(ip.String(), strconv.Itoa(int(at.Port())))
}

// ownAddr returns an address of this machine that the other replicas can probably
// reach.
func ownAddr(ctx context.Context, db config.Postgres) netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	for _, server := range db.Addresses() {
		// Nothing is sent: this only chooses a source address.
		c, err := (&net.Dialer{}).DialContext(ctx, "udp", server)
		if err != nil { // a socket directory, or a name that cannot be resolved now
			continue
		}
		local, err := netip.ParseAddrPort(c.LocalAddr().String())
		_ = c.Close() // nothing was sent
		if err == nil && !local.Addr().IsLoopback() {
			return local.Addr().Unmap().WithZone("")
		}
	}
	addrs, _ := net.InterfaceAddrs() // an error is treated like an empty list
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
