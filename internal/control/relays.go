package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// maxRelays limits the size of the relay map, which every node gets.
	maxRelays     = 200
	maxRelayURL   = 300
	maxRelayText  = 60
	maxRelayWords = 100
	// firstRegion and lastRegion are the numbers that are reserved for regions of one's own.
	firstRegion, lastRegion = 900, 999
	// reportEvery is how often the report of one relay is committed. Reports that arrive in
	// between are known only to the replica that received them.
	reportEvery = time.Minute
	// RelaySilence is how old the last report of a relay is when the relay counts as offline.
	RelaySilence = reportEvery + 45*time.Second
	// relayHolds is how long after its last report a process of a relay cannot be replaced by
	// another one. It is longer than the time between two reports.
	relayHolds = 30 * time.Second
)

// ErrRelayInUse means that another process reports with the key of the same relay. It says
// what to do, and the process may try again.
var ErrRelayInUse = errors.New("another process uses this relay key")

// relayName matches names of relays and codes of regions: they are part of commands and
// of host names.
var relayName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// relayReports holds the newest reports that this replica received.
type relayReports struct {
	mu  sync.Mutex
	new map[mesh.RelayID]mesh.RelayReport // guarded by mu
}

// NewRelay is the input for creating a relay. RegionID and RegionName may be zero.
type NewRelay struct {
	Name, RegionCode, RegionName string
	RegionID                     int
}

// Create adds a relay and returns it with its key, which is not stored. The relay is not
// offered to nodes before a process has joined with the key.
func (s *Relays) Create(ctx context.Context, a mesh.Actor, in NewRelay) (*mesh.Relay, string, error) {
	switch {
	case !relayName.MatchString(in.Name):
		return nil, "", refuse(Invalid, "name", "invalid name %.50q: use up to 32 lower-case letters, digits and hyphens, such as ams-1", in.Name)
	case !relayName.MatchString(in.RegionCode):
		return nil, "", refuse(Invalid, "regionCode", "invalid region code %.50q: use up to 32 lower-case letters, digits and hyphens, such as ams", in.RegionCode)
	case in.RegionID < 0 || in.RegionID > maxRelay:
		return nil, "", refuse(Invalid, "regionId", "the region ID must be from 1 to %d", maxRelay)
	}
	if err := checkText("regionName", in.RegionName, maxRelayWords); err != nil {
		return nil, "", err
	}
	issued := identity.NewKey(identity.KindRelay)
	made, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Relay, []mesh.Event, error) {
		if w.Relays.Len() >= maxRelays {
			return nil, nil, refuse(Conflict, "", "there are already %d relays, the maximum; delete one with: fairlead relays delete", maxRelays)
		}
		if _, taken := w.Relays.ByName(in.Name); taken {
			return nil, nil, refuse(Conflict, "name", "there is already a relay %s; choose another name, or delete that relay first", in.Name)
		}
		r := &mesh.Relay{
			ID: w.Counters.Relay + 1, Name: in.Name, Prefix: issued.Prefix, Hash: issued.Hash, RegionCode: in.RegionCode,
			RegionName: cmp.Or(in.RegionName, in.RegionCode), CreatedAt: now,
		}
		if err := chooseRegion(w.Snapshot, r, in); err != nil {
			return nil, nil, err
		}
		return r, []mesh.Event{mesh.RelayPut{Relay: r}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("relay created", "relay", made.Name, "region", made.Region)
	return made, issued.Text, nil
}

// chooseRegion sets the region of a new relay: that of the other relays with the same code,
// or a new one.
func chooseRegion(s *mesh.Snapshot, r *mesh.Relay, in NewRelay) error {
	used := mesh.OtherRegions(s)
	for id, region := range used {
		if region.Code == in.RegionCode || id == in.RegionID {
			return refuse(Conflict, "regionCode", "region %d (%s) belongs to other relays, which would not be connected to this one; choose another region", id, region.Code)
		}
	}
	for other := range s.Relays.All() {
		switch {
		case other.RegionCode == in.RegionCode && in.RegionID != 0 && in.RegionID != other.Region:
			return refuse(Conflict, "regionId", "region %s has the ID %d", other.RegionCode, other.Region)
		case other.RegionCode == in.RegionCode:
			r.Region, r.RegionName = other.Region, other.RegionName
			return nil
		case other.Region == in.RegionID:
			return refuse(Conflict, "regionId", "region ID %d belongs to region %s", other.Region, other.RegionCode)
		}
		used[other.Region] = mesh.Region{}
	}
	if r.Region = in.RegionID; r.Region != 0 {
		return nil
	}
	for id := firstRegion; id <= lastRegion; id++ {
		if _, taken := used[id]; !taken {
			r.Region = id
			return nil
		}
	}
	return refuse(Conflict, "regionId", "all region IDs from %d to %d are in use; specify another one", firstRegion, lastRegion)
}

// findRelay finds a relay by ID or by name.
func findRelay(s *mesh.Snapshot, ref string) (*mesh.Relay, error) {
	if r, ok := s.Relays.ByName(ref); ok {
		return r, nil
	}
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		if r, ok := s.Relays.Get(mesh.RelayID(id)); ok {
			return r, nil
		}
	}
	return nil, refuse(NotFound, "relay", "unknown relay %.50q; list relays with: fairlead relays list", ref)
}

// Find finds a relay by ID or by name.
func (s *Relays) Find(ctx context.Context, ref string) (*mesh.Relay, error) {
	r, err := findRelay(s.ledger.World().Snapshot, ref)
	if err != nil && s.ledger.Sync(ctx) == nil {
		return findRelay(s.ledger.World().Snapshot, ref)
	}
	return r, err
}

// Drain stops offering a relay to nodes, or offers it again. Nodes that use it switch to
// another.
func (s *Relays) Drain(ctx context.Context, a mesh.Actor, ref string, on bool) (*mesh.Relay, error) {
	r, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Relay, []mesh.Event, error) {
		old, err := findRelay(w.Snapshot, ref)
		if err != nil || old.Draining == on {
			return old, nil, err
		}
		r := *old
		r.Draining = on
		return &r, []mesh.Event{mesh.RelayPut{Relay: &r}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("relay drain", "relay", r.Name, "draining", r.Draining)
	return r, nil
}

// Delete removes a relay. Its process stops, because its key is no longer valid.
func (s *Relays) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	r, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Relay, []mesh.Event, error) {
		r, err := findRelay(w.Snapshot, ref)
		if err != nil {
			return nil, nil, err
		}
		return r, []mesh.Event{mesh.RelayGone{ID: r.ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("relay deleted", "relay", r.Name)
	return nil
}

// Authenticate returns the relay with this key.
func (s *Relays) Authenticate(ctx context.Context, text string) (*mesh.Relay, error) {
	if r, ok := identity.Relay(s.ledger.World().Snapshot, text); ok {
		return r, nil
	}
	if err := s.ledger.Sync(ctx); err != nil { // another replica may have just created it
		return nil, err
	}
	if r, ok := identity.Relay(s.ledger.World().Snapshot, text); ok {
		return r, nil
	}
	return nil, refuse(Denied, "", "unknown relay key: the relay was deleted, or the key is incomplete")
}

// checkPlace checks what a relay says about itself.
func checkPlace(p mesh.RelayPlace) error {
	u, err := url.Parse(p.URL)
	switch {
	case len(p.URL) > maxRelayURL, err != nil, u.Scheme != "https" && u.Scheme != "http", !relayHost(u.Hostname()), u.User != nil, u.RawQuery != "", u.Fragment != "", u.Path != "" && u.Path != "/":
		return refuse(Invalid, "url", "invalid URL %.100q: use the address of the relay, such as https://relay.example.com", p.URL)
	case p.STUNPort < -1 || p.STUNPort > maxRelay:
		return refuse(Invalid, "stunPort", "invalid STUN port %d", p.STUNPort)
	case p.IPv4.IsValid() && !p.IPv4.Is4(), p.IPv6.IsValid() && (!p.IPv6.Is6() || p.IPv6.Zone() != ""):
		return refuse(Invalid, "ipv4", "invalid address")
	case p.Key.IsZero():
		return refuse(Invalid, "key", "the relay has no public key")
	}
	return checkText("version", p.Version, maxRelayText)
}

// hostPattern matches host names in URLs of relays.
var hostPattern = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,251}[0-9A-Za-z])?$`)

func relayHost(name string) bool {
	_, notAddr := netip.ParseAddr(name)
	return hostPattern.MatchString(name) || notAddr == nil
}

// Report records what a relay says: where it is, and its work. The first report, and one
// with a new place, is committed at once; others are committed about once a minute. It
// returns ErrRelayInUse to a second process of the same relay.
func (s *Relays) Report(ctx context.Context, id mesh.RelayID, place mesh.RelayPlace, report mesh.RelayReport) error {
	if err := checkPlace(place); err != nil {
		return err
	}
	report.At = s.ledger.Now()
	decide := func(w *mesh.Snapshot, now mesh.Time) (evs []mesh.Event, err error) {
		old, ok := w.Relays.Get(id)
		if !ok {
			return nil, refuse(Denied, "", "the relay was deleted")
		}
		for other := range w.Relays.All() {
			if other.ID != id && other.Place.Key == place.Key && other.Joined() {
				return nil, refuse(Conflict, "key", "relay %s has the same private key; give each relay its own state directory", other.Name)
			}
		}
		if old.Joined() && old.Place.Key != place.Key {
			if err := s.replaceable(old, place, now); err != nil {
				return nil, err
			}
		}
		if place.JoinedAt = old.Place.JoinedAt; old.Place != place {
			r := *old
			r.Place = place
			if !old.Joined() || old.Place.Key != place.Key {
				r.Place.JoinedAt = now
			}
			evs = append(evs, mesh.RelayPut{Relay: &r})
		}
		if len(evs) > 0 || old.Report.At.Add(reportEvery).Reached(now) || old.Report.At == 0 {
			report.At = max(report.At, now)
			evs = append(evs, mesh.RelayReported{ID: id, Report: report})
		}
		return evs, nil
	}
	err := s.commitRelay(ctx, id, "relay report", decide)
	if r, ok := s.ledger.World().Relays.Get(id); ok && r.Place.Key == place.Key { // it is not a second process
		s.reports.add(id, report)
	}
	return err
}

func (r *relayReports) add(id mesh.RelayID, report mesh.RelayReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil {
		r.new = map[mesh.RelayID]mesh.RelayReport{}
	}
	r.new[id] = report
}

// replaceable returns an error if a process may not replace the one that has joined, because
// that one still reports. Otherwise the two would replace each other all the time, and all
// nodes would get a new relay map each time.
func (s *Relays) replaceable(old *mesh.Relay, place mesh.RelayPlace, now mesh.Time) error {
	s.reports.mu.Lock()
	own := s.reports.new[old.ID]
	s.reports.mu.Unlock()
	wait := relayHolds
	if own.At < old.Report.At && place.URL != old.Place.URL {
		// Another replica receives the reports, and this one knows only those that are committed. At the same URL, a
		// process that has lost its state is likelier than a second one, and the relay map does not change.
		wait += reportEvery
	}
	if max(own.At, old.Report.At).Add(wait).Reached(now) {
		return nil
	}
	return fmt.Errorf("%w: stop it, or wait %d seconds if it has just been replaced", ErrRelayInUse, int(wait.Seconds()))
}

// Leave records that a relay stops, so that nodes switch to another.
func (s *Relays) Leave(ctx context.Context, id mesh.RelayID, own key.NodePublic) error {
	return s.commitRelay(ctx, id, "relay stopped", func(w *mesh.Snapshot, _ mesh.Time) ([]mesh.Event, error) {
		old, ok := w.Relays.Get(id)
		if !ok || !old.Joined() || old.Place.Key != own {
			return nil, nil
		}
		r := *old
		r.Place = mesh.RelayPlace{}
		return []mesh.Event{mesh.RelayPut{Relay: &r}}, nil
	})
}

// commitRelay commits a decision about what a relay says of itself.
func (s *Relays) commitRelay(ctx context.Context, id mesh.RelayID, reason string, decide func(*mesh.Snapshot, mesh.Time) ([]mesh.Event, error)) error {
	evs, err := decide(s.ledger.World().Snapshot, s.ledger.Now())
	if err != nil || len(evs) == 0 {
		return err
	}
	actor := mesh.Actor{Kind: mesh.ActorServer, Reason: reason}
	if r, ok := s.ledger.World().Relays.Get(id); ok {
		actor.Name = "relay " + r.Name
	}
	_, err = s.ledger.Commit(ctx, actor, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return decide(w.Snapshot, now)
	})
	return err
}

// LastReport returns the newest report of a relay that this replica knows.
func (s *Relays) LastReport(r *mesh.Relay) mesh.RelayReport {
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	if own, ok := s.reports.new[r.ID]; ok && own.At > r.Report.At {
		return own
	}
	return r.Report
}

// RelayState describes a relay in one word.
type RelayState string

// The states of a relay.
const (
	RelayWaiting  RelayState = "waiting"  // no process runs
	RelayActive   RelayState = "active"   // nodes use it
	RelayDraining RelayState = "draining" // nodes are sent to other relays
	RelayOffline  RelayState = "offline"  // it has not reported for some time
)

// State returns the state of a relay.
func (s *Relays) State(r *mesh.Relay) RelayState {
	switch {
	case !r.Joined():
		return RelayWaiting
	case s.LastReport(r).At.Add(RelaySilence).Reached(s.ledger.Now()):
		return RelayOffline
	case r.Draining:
		return RelayDraining
	}
	return RelayActive
}
