package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// NoiseKeys implements the use cases for the key by which clients recognize the server.
type NoiseKeys struct {
	*core
	observations *Observations
	keys         Keyring
}

// Keyring creates and stores Noise keys.
type Keyring interface {
	// Rotation creates a key and returns the decision to use it.
	Rotation() func(*policy.World, mesh.Time) ([]mesh.Event, error)
	// Retire decides to accept only the current key.
	Retire(*policy.World, mesh.Time) ([]mesh.Event, error)
	// Reload makes this replica use the keys of the last commit.
	Reload()
	// Stored returns the number of the newest key that this replica has, also after a restart.
	Stored() int
}

func newNoiseKeys(shared *core, observations *Observations, keys Keyring, reg prometheus.Registerer) *NoiseKeys {
	s := &NoiseKeys{core: shared, observations: observations, keys: keys}
	gauge := func(name, help string, value func(NoiseKeyStatus) int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(s.Status())) }))
	}
	gauge("mesh_noise_keys", "Noise keys that the server accepts: 1, or 2 during a rotation.", func(n NoiseKeyStatus) int {
		if n.Previous.IsZero() {
			return 1
		}
		return 2
	})
	gauge("mesh_noise_key_waiting_nodes", "Nodes that have not used the new Noise key yet. 0 if no rotation is in progress.", func(n NoiseKeyStatus) int { return len(n.Waiting) })
	return s
}

// NoiseKeyStatus describes the server's key and, during a rotation, who does not use the new one yet.
type NoiseKeyStatus struct {
	Current key.MachinePublic
	// Previous is the previous key while it is accepted, and zero otherwise. The other fields are set only then.
	Previous  key.MachinePublic
	RotatedAt mesh.Time
	// Waiting are the nodes that have not connected with the new key since the rotation.
	Waiting []*mesh.Node
	// Replicas are those that do not have the new key, or would not after a restart.
	Replicas []string
}

// Status returns the status of the Noise key.
func (s *NoiseKeys) Status() NoiseKeyStatus {
	return s.statusIn(s.ledger.World().Snapshot, s.ledger.Cluster())
}

func (s *NoiseKeys) statusIn(snap *mesh.Snapshot, cluster *ledger.Cluster) NoiseKeyStatus {
	record := mesh.NoiseKeyOf(snap)
	out := NoiseKeyStatus{Current: record.Public}
	if record.Previous == nil {
		return out
	}
	out.Previous, out.RotatedAt = record.Previous.Public, record.RotatedAt
	facts := s.observations.allFacts(snap)
	for n := range snap.Nodes.All() {
		if n.Presence.LastSeen == 0 && !n.Presence.Online { // it was only registered through the API
			continue
		}
		if f := facts[n.ID]; f == nil || f.NoiseKey != record.Generation() {
			out.Waiting = append(out.Waiting, n)
		}
	}
	if s.keys != nil && s.keys.Stored() != record.Generation() {
		out.Replicas = append(out.Replicas, string(cluster.Self().ID))
	}
	for _, r := range cluster.Replicas() {
		if r.ID != cluster.Self().ID && !r.Stopped && r.NoiseKey != record.Generation() {
			out.Replicas = append(out.Replicas, string(r.ID))
		}
	}
	return out
}

// Rotate replaces the Noise key. The server accepts the previous key as well until Retire.
func (s *NoiseKeys) Rotate(ctx context.Context, a mesh.Actor) error {
	if s.keys == nil {
		return refuse(Conflict, "", "this server has no Noise key")
	}
	if err := s.commitKeys(ctx, a, s.keys.Rotation()); err != nil {
		return err
	}
	s.logFor(a).Warn("Noise key rotated: clients use the new key when they are restarted; retire the previous key afterwards", "key", mesh.NoiseKeyOf(s.ledger.World().Snapshot).Public)
	return nil
}

// Retire ends the rotation: the server stops accepting the previous key. Unless force is set, it refuses while nodes still need
// that key.
func (s *NoiseKeys) Retire(ctx context.Context, a mesh.Actor, force bool) error {
	if s.keys == nil {
		return refuse(Conflict, "", "this server has no Noise key")
	}
	err := s.commitKeys(ctx, a, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		evs, err := s.keys.Retire(w, now)
		if err != nil || force {
			return evs, err
		}
		status := s.statusIn(w.Snapshot, s.ledger.Cluster())
		switch {
		case len(status.Replicas) > 0:
			return nil, fmt.Errorf("these replicas would not start again without the previous key: %s; their health checks say why", strings.Join(status.Replicas, ", "))
		case len(status.Waiting) > 0:
			return nil, fmt.Errorf("%d nodes have not used the new key yet and could not reconnect until they are restarted; restart them, or use force", len(status.Waiting))
		}
		return evs, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Warn("previous Noise key retired", "key", mesh.NoiseKeyOf(s.ledger.World().Snapshot).Public)
	return nil
}

func (s *NoiseKeys) commitKeys(ctx context.Context, a mesh.Actor, decide func(*policy.World, mesh.Time) ([]mesh.Event, error)) error {
	_, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (struct{}, []mesh.Event, error) {
		evs, err := decide(w, now)
		if err != nil {
			err = refuse(Conflict, "", "%v", err)
		}
		return struct{}{}, evs, err
	})
	if err == nil {
		s.keys.Reload()
	}
	return err
}

// Warning returns what /health says during a rotation, or "".
func (s *NoiseKeys) Warning() string {
	status := s.Status()
	if status.Previous.IsZero() {
		return ""
	}
	return fmt.Sprintf("the previous Noise key is still accepted; nodes that have not used the new key: %d. Show them with: fairlead noise-key status", len(status.Waiting))
}
