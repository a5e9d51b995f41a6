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
	// saveEvery is how often what a replica observes of one node, or of one key,
	// is committed, and so the most of it that a restart loses.
	saveEvery = 10 * time.Minute
	saveLook  = 5 * time.Second // how long what is due may wait
	// What one node may make the service remember. Encoded, all of it fits into a
	// heartbeat.
	maxLatencies     = 64
	maxWarnings      = 16
	maxWarningText   = 512
	maxWarningSource = 64
	// maxPassed is how much that does not fit is passed over in search of what
	// does: encoding all of a large mesh with every beat would be dear.
	maxPassed = 64
	// flagPrefix begins the source of warnings that clients state as a whole
	// with each request.
	flagPrefix = "warn-"
)

// Observations are what nodes measure and when API keys are used.
type Observations struct {
	*core
	seen observations
}

// observations are what this replica has seen and not committed: it changes too
// often, and nobody waits for it. Other replicas hear of it in the heartbeat.
type observations struct {
	mu    sync.Mutex
	facts map[mesh.NodeID]*mesh.Facts // guarded by mu
	uses  map[mesh.KeyID]mesh.KeyUse  // guarded by mu; of API keys
}

// Measured is what a client says of its network.
type Measured struct {
	// NAT is nil, and Latencies are empty, when it says nothing of them.
	NAT       *mesh.NAT
	Latencies []mesh.Latency
	// Flags are all that the client warns of, in its own words.
	Flags []string
}

// change brings facts up to date.
func (m Measured) change(f *mesh.Facts, now mesh.Time) {
	if m.NAT != nil {
		f.NAT = *m.NAT
	}
	if len(m.Latencies) > 0 {
		f.Latencies = nearest(m.Latencies)
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

// nearest are the regions that matter, if there are too many.
func nearest(all []mesh.Latency) []mesh.Latency {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b mesh.Latency) int {
		return cmp.Or(cmp.Compare(a.Micros, b.Micros), cmp.Compare(a.Region, b.Region))
	})
	all = all[:min(len(all), maxLatencies)]
	mesh.SortLatencies(all)
	return all
}

// flagText says what a flag means to people.
func flagText(flag string) string {
	switch flag {
	case "warn-ip-forwarding-off":
		return "IP forwarding is off, so that nobody gets through to the routes behind this device"
	case "warn-router-unhealthy":
		return "the client could not set up routes or firewall of its device"
	case "warn-etc-apt-source-disabled":
		return "the package source of the client is disabled, so that it gets no updates"
	}
	return flag
}

// warn keeps warnings few and short, whatever a device says.
func warn(f *mesh.Facts, source, text string, now mesh.Time) {
	source, text = shortened(source, maxWarningSource), shortened(text, maxWarningText)
	known := slices.ContainsFunc(f.Warnings, func(w mesh.Warning) bool { return w.Source == source })
	if known || len(f.Warnings) < maxWarnings {
		f.Warn(source, text, now)
	}
}

// shortened takes at most limit bytes when it is encoded.
func shortened(text string, limit int) string {
	text = cleaned(text, limit)
	for {
		over := encodedSize(text) - len(`""`) - limit
		if over <= 0 {
			return text
		}
		text = strings.ToValidUTF8(text[:len(text)-(over+1)/2], "") // a byte takes two at most
	}
}

// encodedSize is what v takes in a heartbeat.
func encodedSize(v any) int {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail
	return b.Len() - len("\n")
}

// Observe takes note of what a node says of its network.
func (s *Observations) Observe(id mesh.NodeID, m Measured) {
	s.observe(id, func(f *mesh.Facts, now mesh.Time) { m.change(f, now) })
}

// SetWarning takes note of a part of a device that complains, or with an empty text no
// longer does.
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

// observe changes what is known of a node and returns it.
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

// Facts is the newest that any replica knows of a node. Its time is zero when
// the node has said nothing yet.
func (s *Observations) Facts(id mesh.NodeID) *mesh.Facts {
	o := &s.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	return newestFacts(s.ledger.World().Snapshot, s.ledger.Cluster().Replicas(), id, o.facts[id])
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

// APIKeyUsed takes note that a key was used. It never blocks.
func (s *Observations) APIKeyUsed(id mesh.KeyID, from string) {
	now, o := s.ledger.Now(), &s.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uses == nil {
		o.uses = map[mesh.KeyID]mesh.KeyUse{}
	}
	o.uses[id] = mesh.KeyUse{At: now, From: from}
}

// LastUse is the newest use of an API key that any replica knows of. Its time is
// zero when there was none.
func (s *Observations) LastUse(k *mesh.APIKey) mesh.KeyUse {
	best, o := k.LastUse, &s.seen
	newer := func(u mesh.KeyUse) {
		if u.At > best.At {
			best = u
		}
	}
	o.mu.Lock()
	newer(o.uses[k.ID])
	o.mu.Unlock()
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, u := range r.Uses {
			if u.ID == k.ID {
				newer(u.Use)
			}
		}
	}
	return best
}

// Unsaved is what this replica has seen and not committed, the newest of it
// that fits into so many bytes. What does not is committed in its time.
func (s *Observations) Unsaved(limit int) (facts []*mesh.Facts, uses []mesh.APIKeyUsed) {
	facts, uses = s.seen.all()
	uses = fitting(uses, &limit)
	return fitting(facts, &limit), uses
}

// fitting keeps what fits into limit bytes, and takes that from the limit. What is
// too large does not keep back what comes after it.
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

// all returns what is not committed, newest first.
func (o *observations) all() ([]*mesh.Facts, []mesh.APIKeyUsed) {
	o.mu.Lock()
	facts := slices.Collect(maps.Values(o.facts))
	var uses []mesh.APIKeyUsed
	for id, u := range o.uses {
		uses = append(uses, mesh.APIKeyUsed{ID: id, Use: u})
	}
	o.mu.Unlock()
	slices.SortFunc(facts, func(a, b *mesh.Facts) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Node, b.Node)) })
	slices.SortFunc(uses, func(a, b mesh.APIKeyUsed) int {
		return cmp.Or(cmp.Compare(b.Use.At, a.Use.At), cmp.Compare(a.ID, b.ID))
	})
	return facts, uses
}

// saved forgets what was committed, unless there is something newer.
func (o *observations) saved(facts []*mesh.Facts, uses []mesh.APIKeyUsed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range facts {
		if o.facts[f.Node] == f {
			delete(o.facts, f.Node)
		}
	}
	for _, u := range uses {
		if o.uses[u.ID] == u.Use {
			delete(o.uses, u.ID)
		}
	}
}

// Save commits what was observed until ctx ends: of each node and key at
// once when nothing newer than ten minutes is committed, and else when it is. The
// end of a warning is committed at once, since people act on warnings.
func (s *Observations) Save(ctx context.Context) error {
	return periodic.Run(ctx, saveLook, func() {
		facts, uses := s.due(s.ledger.Now())
		if err := s.commit(ctx, facts, uses); err != nil {
			s.log.Debug("what nodes measured and when keys were used waits for the database", "error", err)
		}
	})
}

// SaveAll commits what waits for its time, before the service stops.
func (s *Observations) SaveAll(ctx context.Context) error {
	facts, uses := s.seen.all()
	return s.commit(ctx, facts, uses)
}

// due is what was observed and is to be committed now.
func (s *Observations) due(now mesh.Time) ([]*mesh.Facts, []mesh.APIKeyUsed) {
	facts, uses := s.seen.all()
	w := s.ledger.World()
	recent := func(saved mesh.Time) bool { return !saved.Add(saveEvery).Reached(now) }
	facts = slices.DeleteFunc(facts, func(f *mesh.Facts) bool {
		saved, ok := w.Facts.Get(f.Node)
		return ok && recent(saved.At) && !clearsWarning(saved, f)
	})
	uses = slices.DeleteFunc(uses, func(u mesh.APIKeyUsed) bool {
		k, ok := w.APIKeys.Get(u.ID)
		return ok && recent(k.LastUse.At)
	})
	return facts, uses
}

func clearsWarning(before, after *mesh.Facts) bool {
	return slices.ContainsFunc(before.Warnings, func(was mesh.Warning) bool {
		return !slices.ContainsFunc(after.Warnings, func(w mesh.Warning) bool { return w.Source == was.Source })
	})
}

func (s *Observations) commit(ctx context.Context, facts []*mesh.Facts, uses []mesh.APIKeyUsed) error {
	for len(facts)+len(uses) > 0 {
		f, u := facts[:min(len(facts), ledger.MaxNodes)], uses[:min(len(uses), ledger.MaxNodes)]
		if _, err := s.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: string(s.ledger.Cluster().Self().ID)}, decideObserved(f, u)); err != nil {
			return err
		}
		s.seen.saved(f, u)
		facts, uses = facts[len(f):], uses[len(u):]
	}
	return nil
}

// decideObserved keeps what is newer: the node may have moved to another replica,
// which has said more since.
func decideObserved(facts []*mesh.Facts, uses []mesh.APIKeyUsed) ledger.Decide {
	return func(w *policy.World, now mesh.Time) (evs []mesh.Event, _ error) {
		for _, f := range facts {
			_, there := w.Nodes.Get(f.Node)
			if saved, ok := w.Facts.Get(f.Node); there && (!ok || saved.At < f.At) {
				seen := *f
				seen.At = min(f.At, now) // it may be from a future that was taken back
				evs = append(evs, mesh.NodeFacts{Facts: &seen})
			}
		}
		for _, u := range uses {
			if k, ok := w.APIKeys.Get(u.ID); ok && k.LastUse.At < u.Use.At {
				u.Use.At = min(u.Use.At, now)
				evs = append(evs, u)
			}
		}
		return evs, nil
	}
}
