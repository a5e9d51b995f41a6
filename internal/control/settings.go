package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// The source of a setting's value.
const (
	sourceConfig  = "config"
	sourceAPI     = mesh.SourceAPI
	sourceReplica = "replica"
)

const (
	settingsRetry = 500 * time.Millisecond
	// relayPatience is longer than the time for which the previous run of this server
	// still counts as alive after a restart.
	relayPatience = 10 * time.Second
)

// Configure applies the configured DNS settings. Settings made through the API take
// precedence, except for the base domain, unless the configuration file pins the values.
func (s *DNS) Configure(ctx context.Context, dns mesh.DNS, pinned bool) error {
	value, err := json.Marshal(dns)
	if err != nil {
		return fmt.Errorf("encoding DNS settings: %w", err)
	}
	text := string(value)
	s.configured.Store(&text)
	if old, ok := s.ledger.World().Settings.ByKey(mesh.SettingDNS); ok && old.Source == sourceAPI && old.Value != text && !pinned {
		s.log.Info("DNS settings in the configuration ignored, because DNS settings were changed through the API; to use the configuration again, run fairlead dns reset")
	}
	s.commitConfigured(ctx, mesh.SettingDNS, func(w *mesh.Snapshot, agreed bool, now mesh.Time) []mesh.Event {
		return decideDNS(w, dns.BaseDomain, text, pinned, agreed, now)
	})
	return nil
}

// ConfigureClients applies what the configuration allows or asks of clients.
func (s *DNS) ConfigureClients(ctx context.Context, clients mesh.Clients) error {
	value, err := json.Marshal(clients)
	if err != nil {
		return fmt.Errorf("encoding client settings: %w", err)
	}
	s.commitConfigured(ctx, mesh.SettingClients, func(w *mesh.Snapshot, agreed bool, now mesh.Time) []mesh.Event {
		return decideClients(w, clients, string(value), agreed, now)
	})
	return nil
}

// decideClients is like decideDNS, for what the configuration allows or asks of clients.
func decideClients(w *mesh.Snapshot, clients mesh.Clients, value string, agreed bool, now mesh.Time) []mesh.Event {
	if w.Clients().Equal(clients) || !agreed {
		return nil
	}
	return w.SettingPutFor(mesh.SettingClients, value, sourceConfig, false, now)
}

// Relays implements the use cases for relays and the relay map.
type Relays struct {
	*core
	refusal atomic.Pointer[Refusal] // why the embedded relay is not in the map
	reports relayReports
	probes  relayProbes
}

// Configure sets the relay map that was read from URLs and files, in the clients' format.
// An empty string means that there is none.
func (s *Relays) Configure(ctx context.Context, relays string) {
	s.commitConfigured(ctx, mesh.SettingRelays, func(w *mesh.Snapshot, agreed bool, now mesh.Time) []mesh.Event {
		return decideRelays(w, relays, agreed, now)
	})
}

// commitConfigured commits what follows from the configuration, and returns when nothing is
// left to do or ctx ends. While another live replica has a different configuration, it
// waits and changes nothing, so that replicas do not overwrite each other's settings. It
// also waits for the database.
func (s *core) commitConfigured(ctx context.Context, setting string, decide func(w *mesh.Snapshot, agreed bool, now mesh.Time) []mesh.Event) {
	warned := false
	for ctx.Err() == nil {
		other, known := s.otherConfig()
		agreed := known && other == ""
		err := s.commitSetting(ctx, "configuration", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
			return decide(w, agreed, now), nil
		})
		if err == nil && len(decide(s.ledger.World().Snapshot, true, 0)) == 0 {
			return
		}
		if other != "" && !warned {
			warned = true
			s.log.Warn("setting not applied: another replica has a different configuration; make both identical and restart the replica that you changed", "setting", setting, "replica", other)
		}
		pause(ctx, settingsRetry)
	}
}

// decideDNS always applies the first value, and a later one only if the replicas agree.
func decideDNS(w *mesh.Snapshot, baseDomain, value string, pinned, agreed bool, now mesh.Time) []mesh.Event {
	old, set := w.Settings.ByKey(mesh.SettingDNS)
	switch {
	case set && !agreed:
		return nil
	case set && old.Source == sourceAPI && !pinned:
		return decideBaseDomain(w, baseDomain, now)
	}
	return w.SettingPutFor(mesh.SettingDNS, value, sourceConfig, pinned, now)
}

// decideBaseDomain puts the configured base domain into the settings made through the API.
func decideBaseDomain(w *mesh.Snapshot, baseDomain string, now mesh.Time) []mesh.Event {
	dns := w.DNS()
	if dns.BaseDomain == baseDomain {
		return nil
	}
	dns.BaseDomain, dns.MagicDNS = baseDomain, dns.MagicDNS && baseDomain != ""
	value, err := json.Marshal(dns)
	if err != nil {
		return nil // cannot happen: it was encoded before
	}
	return w.SettingPutFor(mesh.SettingDNS, string(value), sourceAPI, false, now)
}

// decideRelays is like decideDNS, for the relay map. An empty string removes the map.
func decideRelays(w *mesh.Snapshot, relays string, agreed bool, now mesh.Time) []mesh.Event {
	old, set := w.Settings.ByKey(mesh.SettingRelays)
	switch {
	case set && !agreed, !set && relays == "":
		return nil
	case relays == "":
		return []mesh.Event{mesh.SettingGone{ID: old.ID}}
	}
	return w.SettingPutFor(mesh.SettingRelays, relays, sourceConfig, false, now)
}

// otherConfig returns a live replica with a different configuration, as anotherReplica
// does.
func (s *core) otherConfig() (replica string, known bool) {
	own := s.ledger.Cluster().Self().ConfigHash
	return s.anotherReplica(func(r ledger.Report) bool { return r.ConfigHash != own })
}

// anotherReplica returns a live replica other than this one for which holds is true, if
// there is one. known is false before the first heartbeat.
func (s *core) anotherReplica(holds func(ledger.Report) bool) (replica string, known bool) {
	beats, replicas := s.ledger.Cluster().Status()
	for _, r := range replicas {
		if r.ID != s.ledger.Cluster().Self().ID && holds(r) {
			return string(r.ID), true
		}
	}
	return "", beats.Successes > 0
}

// Publish keeps the region of this replica's embedded relay, in the clients' format, in the
// relay map until ctx ends. Other replicas may have removed it while they could not see
// this one. The relays of replicas with the same region are connected, and have one entry.
// While another live replica has the region with another address it waits: devices are
// served without this relay, and the log and Warnings say so.
func (s *Relays) Publish(ctx context.Context, region int, form json.RawMessage) error {
	self := string(s.ledger.Cluster().Self().ID)
	var conflictSince time.Time // since when another replica has the region
	for ctx.Err() == nil {
		alive, meshed := s.alive(), s.meshed(region)
		err := s.commitSetting(ctx, "embedded relay", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
			return decideRelay(w, region, self, form, alive, meshed, now)
		})
		var refusal *Refusal
		switch {
		case err == nil:
			conflictSince = time.Time{}
			s.refusal.Store(nil)
		case !errors.As(err, &refusal):
		case conflictSince.IsZero():
			conflictSince = time.Now()
		case time.Since(conflictSince) > relayPatience && s.refusal.CompareAndSwap(nil, refusal):
			s.log.Error("embedded relay not added to the relay map", "error", err)
		}
		pause(ctx, settingsRetry)
	}
	return nil
}

// decideRelay adds the region of this replica's relay. If another live replica has added
// the same region, it does nothing if their relays are connected, and otherwise refuses.
func decideRelay(w *mesh.Snapshot, region int, self string, form json.RawMessage, alive, meshed func(replica string) bool, now mesh.Time) ([]mesh.Event, error) {
	number := strconv.Itoa(region)
	_, embedded := w.RelaySettings()
	if holder := embedded[number].Replica; holder != "" && holder != self && alive(holder) {
		if meshed(holder) && string(embedded[number].Region) == string(form) {
			return nil, nil
		}
		return nil, refuse(Conflict, "derp.server.region_id",
			"region %s is already the embedded relay of replica %s, with another address; give all replicas the same server_url and derp.server settings, or each its own derp.server.region_id", number, holder)
	}
	value, err := json.Marshal(mesh.EmbeddedRelay{Replica: self, Region: form})
	if err != nil {
		return nil, fmt.Errorf("encoding the embedded relay: %w", err)
	}
	return w.SettingPutFor(mesh.SettingRelay+number, string(value), sourceReplica, false, now), nil
}

// alive returns a function that reports whether a replica is alive as of the last
// heartbeat. Before the first heartbeat, it reports true for all.
func (s *Relays) alive() func(replica string) bool {
	beats, replicas := s.ledger.Cluster().Status()
	beating := map[string]bool{}
	for _, r := range replicas {
		beating[string(r.ID)] = true
	}
	return func(replica string) bool { return beating[replica] || beats.Successes == 0 }
}

// meshed reports whether a live replica's embedded relay connects to the others of a region.
func (s *Relays) meshed(region int) func(replica string) bool {
	in := map[string]bool{}
	for _, r := range s.ledger.Cluster().Replicas() {
		in[string(r.ID)] = r.Relay != nil && r.Relay.Region == region
	}
	return func(replica string) bool { return in[replica] }
}

// commitSetting first decides on the current snapshot, so that a setting that needs no
// change costs no commit.
func (s *core) commitSetting(ctx context.Context, reason string, decide func(*mesh.Snapshot, mesh.Time) ([]mesh.Event, error)) error {
	if evs, err := decide(s.ledger.World().Snapshot, s.ledger.Now()); err != nil || len(evs) == 0 {
		return err
	}
	actor := mesh.Actor{Kind: mesh.ActorReplica, ID: string(s.ledger.Cluster().Self().ID), Reason: reason}
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
