package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// saveEvery is how often the observations of one node or one key are committed, and so
	// how much a restart can lose.
	saveEvery    = 10 * time.Minute
	saveInterval = 5 * time.Second // how long due observations may wait
	// Limits on what one node can make the server store. Encoded, all of it fits into a
	// heartbeat.
	maxLatencies     = 64
	maxWarnings      = 16
	maxWarningText   = 512
	maxWarningSource = 64
	// maxPassed is how many entries that do not fit are skipped while looking for one that
	// does. Encoding all of a large mesh at every heartbeat would be expensive.
	maxPassed = 64
	// flagPrefix begins the source of those warnings that clients always send as a complete
	// list.
	flagPrefix = "warn-"
)

// Observations implements the use cases for what nodes measure, and for the last use of API
// keys and sessions.
type Observations struct {
	*core
	seen observations
}

// observations holds what this replica has seen and not yet committed, because it changes
// often and nobody waits for it. Other replicas get it with the heartbeat.
type observations struct {
	mu       sync.Mutex
	facts    map[mesh.NodeID]*mesh.Facts    // guarded by mu
	uses     map[mesh.KeyID]mesh.KeyUse     // guarded by mu; of API keys
	sessions map[mesh.SessionID]mesh.KeyUse // guarded by mu
}

// Measured is what a client reports about its network.
type Measured struct {
	// NAT is nil and Latencies is empty if the client does not report them.
	NAT       *mesh.NAT
	Latencies []mesh.Latency
	// Flags lists the flags that the client sets. Those that begin with flagPrefix are
	// warnings.
	Flags []string
	// NoiseKey is the number of the server's key that the client used, or zero if the server has only one.
	NoiseKey int
}

// change applies a report to facts.
func (m Measured) change(f *mesh.Facts, now mesh.Time) {
	if m.NAT != nil {
		f.NAT = *m.NAT
	}
	if len(m.Latencies) > 0 {
		f.Latencies = nearest(m.Latencies)
	}
	if m.NoiseKey != 0 {
		f.NoiseKey = m.NoiseKey
	}
	for _, w := range f.Warnings {
		if strings.HasPrefix(w.Source, flagPrefix) && !slices.Contains(m.Flags, w.Source) {
			f.Warn(w.Source, "", now)
		}
	}
	for _, flag := range m.Flags {
		if strings.HasPrefix(flag, flagPrefix) {
			warn(f, flag, flagText(flag), now)
		}
	}
}

// nearest returns the latencies of the nearest regions, at most maxLatencies, sorted by
// region.
func nearest(all []mesh.Latency) []mesh.Latency {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b mesh.Latency) int {
		return cmp.Or(cmp.Compare(a.Micros, b.Micros), cmp.Compare(a.Region, b.Region))
	})
	all = all[:min(len(all), maxLatencies)]
	mesh.SortLatencies(all)
	return all
}

// flagText returns a readable form of a flag.
func flagText(flag string) string {
	switch flag {
	case "warn-ip-forwarding-off":
		return "IP forwarding is off, so the routes of this device do not work"
	case "warn-router-unhealthy":
		return "the client could not configure the routes or the firewall of the device"
	case "warn-etc-apt-source-disabled":
		return "the Tailscale package repository is disabled, so the client gets no updates"
	}
	return flag
}

// warn sets a warning. It limits the number of warnings and their length.
func warn(f *mesh.Facts, source, text string, now mesh.Time) {
	source, text = shortened(source, maxWarningSource), shortened(text, maxWarningText)
	known := slices.ContainsFunc(f.Warnings, func(w mesh.Warning) bool { return w.Source == source })
	if known || len(f.Warnings) < maxWarnings {
		f.Warn(source, text, now)
	}
}

// shortened shortens text to at most limit bytes when encoded.
func shortened(text string, limit int) string {
	text = cleaned(text, limit)
	for {
		over := encodedSize(text) - len(`""`) - limit
		if over <= 0 {
			return text
		}
		text = strings.ToValidUTF8(text[:len(text)-(over+1)/2], "") // a byte needs at most two when encoded
	}
}

// encodedSize returns the size of v in a heartbeat.
func encodedSize(v any) int {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail
	return b.Len() - len("\n")
}

// Observe records what a node reports about its network.
func (s *Observations) Observe(id mesh.NodeID, m Measured) {
	s.observe(id, func(f *mesh.Facts, now mesh.Time) { m.change(f, now) })
}

// SetWarning sets the warning from one source on a device. An empty string clears it.
func (s *Clients) SetWarning(ctx context.Context, machine key.MachinePublic, node key.NodePublic, source, text string) error {
	n, err := s.Find(ctx, machine, node)
	if err != nil {
		return err
	}
	source = strings.TrimPrefix(source, flagPrefix)
	s.observations.observe(n.ID, func(f *mesh.Facts, now mesh.Time) { warn(f, source, text, now) })
	return nil
}

// warnRoutes is the source of the warning about routes that are ignored.
const warnRoutes = "routes"

// noteForbidden sets or clears the warning about ignored routes of a node.
func (s *Observations) noteForbidden(a mesh.Actor, n *mesh.Node, announced []netip.Prefix, f *mesh.Facts, now mesh.Time) {
	const shown = 3
	w, before, text := s.ledger.World(), f.Warnings, ""
	ignored := slices.DeleteFunc(slices.Clone(announced), func(p netip.Prefix) bool { return !forbidden(w)(p) })
	if len(ignored) > 0 {
		text = fmt.Sprintf("ignored routes that overlap the mesh's own addresses: %v", ignored[:min(len(ignored), shown)])
	}
	warn(f, warnRoutes, text, now)
	if text != "" && !slices.Equal(before, f.Warnings) && s.refusals.Admit(a.Addr) {
		s.log.Warn("advertised routes ignored: they overlap the mesh's own addresses", "node", n.ID, "name", n.Name,
			"routes", ignored[:min(len(ignored), shown)], "ignored", len(ignored), "addr", a.Addr)
	}
}

// observe changes the facts of a node and returns them.
func (s *Observations) observe(id mesh.NodeID, change func(*mesh.Facts, mesh.Time)) *mesh.Facts {
	w, now, o := s.ledger.World(), s.ledger.Now(), &s.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	known := newestFacts(w.Snapshot, s.ledger.Cluster().Replicas(), id, o.facts[id])
	next := *known
	change(&next, now)
	if next.Equal(known) {
		return known
	}
	next.At = now
	if o.facts == nil {
		o.facts = map[mesh.NodeID]*mesh.Facts{}
	}
	o.facts[id] = &next
	return &next
}

// Facts returns the newest facts about a node that any replica has. Their time is zero if
// the node has reported nothing yet.
func (s *Observations) Facts(id mesh.NodeID) *mesh.Facts {
	o := &s.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	return newestFacts(s.ledger.World().Snapshot, s.ledger.Cluster().Replicas(), id, o.facts[id])
}

// allFacts returns the newest observations of all nodes in one pass. Facts searches the reports of all replicas for one node.
func (s *Observations) allFacts(snap *mesh.Snapshot) map[mesh.NodeID]*mesh.Facts {
	all := map[mesh.NodeID]*mesh.Facts{}
	note := func(f *mesh.Facts) {
		if f != nil && (all[f.Node] == nil || f.At > all[f.Node].At) {
			all[f.Node] = f
		}
	}
	for f := range snap.Facts.All() {
		note(f)
	}
	for _, f := range s.seen.all().facts {
		note(f)
	}
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, f := range r.Facts {
			note(f)
		}
	}
	return all
}

func newestFacts(s *mesh.Snapshot, replicas []ledger.Report, id mesh.NodeID, own *mesh.Facts) *mesh.Facts {
	best := &mesh.Facts{Node: id}
	if saved, ok := s.Facts.Get(id); ok {
		best = saved
	}
	if own != nil && own.At > best.At {
		best = own
	}
	for _, r := range replicas {
		for _, f := range r.Facts {
			if f != nil && f.Node == id && f.At > best.At {
				best = f
			}
		}
	}
	return best
}

// APIKeyUsed records that a key was used. It never blocks.
func (s *Observations) APIKeyUsed(id mesh.KeyID, from string) { used(s, &s.seen.uses, id, from) }

// SessionUsed records that a session was used. It never blocks.
func (s *Observations) SessionUsed(id mesh.SessionID, from string) {
	used(s, &s.seen.sessions, id, from)
}

// used records a use in one of the maps of s.seen.
func used[ID comparable](s *Observations, uses *map[ID]mesh.KeyUse, id ID, from string) {
	now := s.ledger.Now()
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if *uses == nil {
		*uses = map[ID]mesh.KeyUse{}
	}
	(*uses)[id] = mesh.KeyUse{At: now, From: from}
}

// LastUse returns the last use of an API key that any replica knows of. Its time is zero if
// there was none.
func (s *Observations) LastUse(k *mesh.APIKey) mesh.KeyUse {
	best := later(k.LastUse, seenUse(s, &s.seen.uses, k.ID))
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, u := range r.Uses {
			if u.ID == k.ID {
				best = later(best, u.Use)
			}
		}
	}
	return best
}

// LastSessionUse is LastUse for a session.
func (s *Observations) LastSessionUse(v *mesh.Session) mesh.KeyUse {
	best := later(v.LastUse, seenUse(s, &s.seen.sessions, v.ID))
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, u := range r.SessionUses {
			if u.ID == v.ID {
				best = later(best, u.Use)
			}
		}
	}
	return best
}

func later(a, b mesh.KeyUse) mesh.KeyUse {
	if b.At > a.At {
		return b
	}
	return a
}

// seenUse returns the use in one of the maps of s.seen, or zero.
func seenUse[ID comparable](s *Observations, uses *map[ID]mesh.KeyUse, id ID) mesh.KeyUse {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	return (*uses)[id]
}

// observed is a list of observations, newest first.
type observed struct {
	facts    []*mesh.Facts
	uses     []mesh.APIKeyUsed
	sessions []mesh.SessionUsed
}

// Unsaved returns the newest uncommitted observations of this replica that fit into limit
// bytes. The rest are published once they are committed.
func (s *Observations) Unsaved(limit int) (facts []*mesh.Facts, uses []mesh.APIKeyUsed, sessions []mesh.SessionUsed) {
	all := s.seen.all()
	uses, sessions = fitting(all.uses, &limit), fitting(all.sessions, &limit)
	return fitting(all.facts, &limit), uses, sessions
}

// fitting returns the elements that fit into limit bytes, and subtracts their size from
// limit. An element that is too large does not block those after it.
func fitting[T any](all []T, limit *int) []T {
	passed := 0
	return slices.DeleteFunc(all, func(v T) bool {
		if passed == maxPassed {
			return true
		}
		size := encodedSize(v) + len(",")
		if size > *limit {
			passed++
			return true
		}
		*limit -= size
		return false
	})
}

// all returns the uncommitted observations.
func (o *observations) all() (all observed) {
	o.mu.Lock()
	all.facts = slices.Collect(maps.Values(o.facts))
	for id, u := range o.uses {
		all.uses = append(all.uses, mesh.APIKeyUsed{ID: id, Use: u})
	}
	for id, u := range o.sessions {
		all.sessions = append(all.sessions, mesh.SessionUsed{ID: id, Use: u})
	}
	o.mu.Unlock()
	slices.SortFunc(all.facts, func(a, b *mesh.Facts) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Node, b.Node)) })
	slices.SortFunc(all.uses, func(a, b mesh.APIKeyUsed) int {
		return cmp.Or(cmp.Compare(b.Use.At, a.Use.At), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(all.sessions, func(a, b mesh.SessionUsed) int {
		return cmp.Or(cmp.Compare(b.Use.At, a.Use.At), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// saved removes observations that were committed, unless there are newer ones.
func (o *observations) saved(done observed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range done.facts {
		if o.facts[f.Node] == f {
			delete(o.facts, f.Node)
		}
	}
	for _, u := range done.uses {
		if o.uses[u.ID] == u.Use {
			delete(o.uses, u.ID)
		}
	}
	for _, u := range done.sessions {
		if o.sessions[u.ID] == u.Use {
			delete(o.sessions, u.ID)
		}
	}
}

// Save commits observations until ctx ends: those of a node, key or session as soon as its
// last commit is older than saveEvery. The end of a warning is committed immediately,
// because people act on warnings.
func (s *Observations) Save(ctx context.Context) error {
	return periodic.Run(ctx, saveInterval, func() {
		if err := s.commit(ctx, s.due(s.ledger.Now())); err != nil {
			s.log.Debug("node measurements and key usage not saved, retrying", "error", err)
		}
	})
}

// SaveAll commits all observations before the server stops.
func (s *Observations) SaveAll(ctx context.Context) error { return s.commit(ctx, s.seen.all()) }

// due returns the observations that have to be committed now, and those that the stored ones
// have superseded, which the commit drops.
func (s *Observations) due(now mesh.Time) observed {
	all, w := s.seen.all(), s.ledger.World()
	recent := func(saved mesh.Time) bool { return !saved.Add(saveEvery).Reached(now) }
	all.facts = slices.DeleteFunc(all.facts, func(f *mesh.Facts) bool {
		saved, ok := w.Facts.Get(f.Node)
		return ok && saved.At < f.At && recent(saved.At) && !clearsWarning(saved, f)
	})
	all.uses = slices.DeleteFunc(all.uses, func(u mesh.APIKeyUsed) bool {
		k, ok := w.APIKeys.Get(u.ID)
		return ok && k.LastUse.At < u.Use.At && recent(k.LastUse.At)
	})
	all.sessions = slices.DeleteFunc(all.sessions, func(u mesh.SessionUsed) bool {
		v, ok := w.Sessions.Get(u.ID)
		return ok && v.LastUse.At < u.Use.At && recent(v.LastUse.At)
	})
	return all
}

func clearsWarning(before, after *mesh.Facts) bool {
	return slices.ContainsFunc(before.Warnings, func(was mesh.Warning) bool {
		return !slices.ContainsFunc(after.Warnings, func(w mesh.Warning) bool { return w.Source == was.Source })
	})
}

func (s *Observations) commit(ctx context.Context, all observed) error {
	for len(all.facts)+len(all.uses)+len(all.sessions) > 0 {
		some := observed{first(&all.facts), first(&all.uses), first(&all.sessions)}
		if _, err := s.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: string(s.ledger.Cluster().Self().ID)}, some.decide); err != nil {
			return err
		}
		s.seen.saved(some)
	}
	return nil
}

// first removes and returns the elements that one commit may contain.
func first[T any](list *[]T) []T {
	n := min(len(*list), ledger.MaxNodes)
	some := (*list)[:n]
	*list = (*list)[n:]
	return some
}

// decide stores observations. It skips those that are older than the stored ones: the node
// may have moved to another replica, which has reported more since.
func (o observed) decide(w *policy.World, now mesh.Time) (evs []mesh.Event, _ error) {
	for _, f := range o.facts {
		_, there := w.Nodes.Get(f.Node)
		if saved, ok := w.Facts.Get(f.Node); there && (!ok || saved.At < f.At) {
			seen := *f
			seen.At = min(f.At, now) // its time may come from before a clock repair
			evs = append(evs, mesh.NodeFacts{Facts: &seen})
		}
	}
	for _, u := range o.uses {
		if k, ok := w.APIKeys.Get(u.ID); ok && k.LastUse.At < u.Use.At {
			u.Use.At = min(u.Use.At, now)
			evs = append(evs, u)
		}
	}
	for _, u := range o.sessions {
		if v, ok := w.Sessions.Get(u.ID); ok && v.LastUse.At < u.Use.At {
			u.Use.At = min(u.Use.At, now)
			evs = append(evs, u)
		}
	}
	return evs, nil
}
