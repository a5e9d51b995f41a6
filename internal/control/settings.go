package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Where the value of a setting came from.
const (
	sourceConfig  = "config"
	sourceAPI     = "api"
	sourceReplica = "replica"
)

const (
	settingsRetry = 500 * time.Millisecond
	// relayPatience is longer than the run of this service before a restart
	// still counts as alive.
	relayPatience = 10 * time.Second
)

// CommitDNS makes the configured DNS what clients are told, and returns when it
// is or ctx ends. What was set through the API stays, unless the configuration
// file pins the value. While another live replica runs another configuration
// nobody's is taken, so that replicas do not overwrite each other's: it waits.
func (s *Service) CommitDNS(ctx context.Context, dns mesh.DNS, pinned bool) error {
	value, err := json.Marshal(dns)
	if err != nil {
		return fmt.Errorf("encoding dns settings: %w", err)
	}
	warned := false
	for ctx.Err() == nil {
		dissenter, known := s.dissenter()
		agreed := known && dissenter == ""
		err := s.commitSetting(ctx, "configuration", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
			return decideDNS(w, string(value), pinned, agreed, now), nil
		})
		if err == nil && len(decideDNS(s.ledger.World().Snapshot, string(value), pinned, true, 0)) == 0 {
			return nil
		}
		if dissenter != "" && !warned {
			warned = true
			s.log.Warn("dns settings wait: another replica has another configuration; make them the same and restart it", "replica", dissenter)
		}
		pause(ctx, settingsRetry)
	}
	return nil
}

// decideDNS takes the first value in any case, and a later one only when the
// replicas agree.
func decideDNS(w *mesh.Snapshot, value string, pinned, agreed bool, now mesh.Time) []mesh.Event {
	old, set := w.Setting(mesh.SettingDNS)
	if set && (!agreed || old.Source == sourceAPI && !pinned) {
		return nil
	}
	return w.SettingPutFor(mesh.SettingDNS, value, sourceConfig, pinned, now)
}

// dissenter names a live replica with another configuration, if there is one.
// Before the first beat nothing is known.
func (s *Service) dissenter() (replica string, known bool) {
	self := s.ledger.Self()
	for _, r := range s.ledger.Replicas() {
		if r.ID != self.ID && r.ConfigHash != self.ConfigHash {
			return string(r.ID), true
		}
	}
	return "", s.ledger.Pulse().Successes > 0
}

// SetRelays makes the relay map that was read from URLs and files, in the form
// of the clients, what they are told; empty text means that there is none.
func (s *Service) SetRelays(ctx context.Context, relays string) error {
	return s.commitSetting(ctx, "relay map", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
		if relays != "" {
			return w.SettingPutFor(mesh.SettingRelays, relays, sourceConfig, false, now), nil
		}
		if old, ok := w.Setting(mesh.SettingRelays); ok {
			return []mesh.Event{mesh.SettingGone{ID: old.ID}}, nil
		}
		return nil, nil
	})
}

// PublishRelay keeps the region of this replica's embedded relay, in the form of
// the clients, in the map until ctx ends; others may have removed it while they
// could not see this replica. It fails when another live replica has the number.
func (s *Service) PublishRelay(ctx context.Context, region int, form json.RawMessage) error {
	self := string(s.ledger.Self().ID)
	value, err := json.Marshal(mesh.Relay{Replica: self, Region: form})
	if err != nil {
		return fmt.Errorf("encoding the embedded relay: %w", err)
	}
	published, quarrel := false, time.Time{}
	for ctx.Err() == nil {
		alive := s.alive()
		err := s.commitSetting(ctx, "embedded relay", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
			return decideRelay(w, region, self, string(value), alive, now)
		})
		var refusal *Refusal
		switch {
		case err == nil:
			published, quarrel = true, time.Time{}
		case !errors.As(err, &refusal):
		case quarrel.IsZero():
			quarrel = time.Now()
			s.log.Warn("the embedded relay waits for its region", "error", err)
		case time.Since(quarrel) > relayPatience && !published:
			return err
		}
		pause(ctx, settingsRetry)
	}
	return nil
}

// decideRelay takes a region that nobody alive has.
func decideRelay(w *mesh.Snapshot, region int, self, value string, alive func(replica string) bool, now mesh.Time) ([]mesh.Event, error) {
	number := strconv.Itoa(region)
	_, embedded := w.Relays()
	if holder := embedded[number].Replica; holder != "" && holder != self && alive(holder) {
		return nil, refuse(Conflict, "derp.server.region_id",
			"region %s is the embedded relay of replica %s; give each replica a derp.server.region_id of its own", number, holder)
	}
	return w.SettingPutFor(mesh.SettingRelay+number, value, sourceReplica, false, now), nil
}

// alive tells who is alive as of the last beat; before the first, everybody may
// be.
func (s *Service) alive() func(replica string) bool {
	beating := map[string]bool{}
	for _, r := range s.ledger.Replicas() {
		beating[string(r.ID)] = true
	}
	known := s.ledger.Pulse().Successes > 0
	return func(replica string) bool { return beating[replica] || !known }
}

// commitSetting looks at the world first: what is as it should be costs nothing.
func (s *Service) commitSetting(ctx context.Context, reason string, decide func(*mesh.Snapshot, mesh.Time) ([]mesh.Event, error)) error {
	if evs, err := decide(s.ledger.World().Snapshot, mesh.TimeOf(time.Now())); err != nil || len(evs) == 0 {
		return err
	}
	actor := mesh.Actor{Kind: mesh.ActorReplica, ID: string(s.ledger.Self().ID), Reason: reason}
	_, err := s.ledger.Commit(ctx, actor, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return decide(w.Snapshot, now)
	})
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
