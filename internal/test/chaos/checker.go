package chaos

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Sort is the guarantee that a finding violates.
type Sort string

// The sorts of findings.
const (
	Lost     Sort = "lost"     // a command was acknowledged and is not in the log
	Trace    Sort = "trace"    // a command was refused or failed and is in the log
	Order    Sort = "order"    // a caller's commands are in the log twice or out of order
	Content  Sort = "content"  // the log differs from what the caller was told
	Log      Sort = "log"      // revisions are not consecutive, or times go backwards
	Shared   Sort = "shared"   // two live objects have the same name, address or key
	Reused   Sort = "reused"   // an id means two things, or was reused
	Admitted Sort = "admitted" // a node joined with a key that is not valid
	Stale    Sort = "stale"    // an event is about an object that does not exist
	Digest   Sort = "digest"   // snapshots differ at one revision
	Error    Sort = "error"    // a command or a process ended in an unexpected way
	Damaged  Sort = "damaged"  // a database file cannot be read, or is inconsistent
	Unseen   Sort = "unseen"   // a response ignores what was acknowledged before the request
)

// Finding is one violated guarantee.
type Finding struct {
	Sort Sort   `json:"sort"`
	Text string `json:"text"`
}

func (f Finding) String() string { return string(f.Sort) + ": " + f.Text }

// Entry is one row of the log as stored in the database.
type Entry struct {
	Rev    mesh.Revision
	At     mesh.Time
	Caller string
	Seq    int64
	Raw    []byte
	Events []mesh.Event
}

// Tally counts what happened, so that a run in which nothing happened can be distinguished from a good one.
type Tally struct {
	Answers    map[Outcome]int
	Views      int // compared with the log
	Events     map[mesh.Kind]int
	Audited    int          // events that must have an audit row
	Enrolments map[bool]int // by whether the key was reusable
	Repeated   int          // acknowledged commands that had nothing left to do
	Recovered  int          // entries of unknown outcome or of callers that were killed
	Rewound    int          // entries that a failover lost
}

// Checker compares what callers were told with the log. Answers and entries may be interleaved in any way,
// but the answers of one caller must be in its order, and the entries in the order of the log. It keeps only
// as much history as the checks need, so it can run for hours.
type Checker struct {
	Tally Tally

	findings []Finding
	replay   *mesh.Snapshot
	past     [memory]*mesh.Snapshot // the newest replayed ones, by revision
	ahead    map[mesh.Revision][]View
	at       mesh.Time
	callers  map[string]*caller
	claims   claims
	born     map[string]string // object → what never changes in it; "" after it was deleted
	admitted map[mesh.KeyID]mesh.NodeID
	facts    map[uint64]struct{} // hashes of all users and nodes that ever existed, as encoded
	seed     maphash.Seed
}

// memory is how many revisions a view may be behind. Snapshots share what did not change, so keeping them
// costs little.
const memory = 1 << 12

// caller is one sequence of commands.
type caller struct {
	last    int64    // seq of its newest entry
	waiting []Answer // newer than last; their entries may still come
	early   []Entry  // their answers may still come
}

// NewChecker returns a checker at the beginning of the log.
func NewChecker() *Checker {
	return &Checker{
		Tally:  Tally{Answers: map[Outcome]int{}, Events: map[mesh.Kind]int{}, Enrolments: map[bool]int{}},
		replay: mesh.Empty(), ahead: map[mesh.Revision][]View{}, callers: map[string]*caller{},
		claims: claims{holder: map[string]string{}, held: map[string][]string{}},
		born:   map[string]string{}, admitted: map[mesh.KeyID]mesh.NodeID{},
		facts: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}
}

// Rev returns the revision of the last entry that was handled.
func (c *Checker) Rev() mesh.Revision { return c.replay.Rev }

// Findings returns the findings so far.
func (c *Checker) Findings() []Finding { return slices.Clone(c.findings) }

// Report adds a finding.
func (c *Checker) Report(s Sort, format string, args ...any) {
	c.findings = append(c.findings, Finding{s, fmt.Sprintf(format, args...)})
}

func (c *Checker) caller(name string) *caller {
	k, ok := c.callers[name]
	if !ok {
		k = &caller{}
		c.callers[name] = k
	}
	return k
}

// Answer handles what a caller was told.
func (c *Checker) Answer(a Answer) {
	c.Tally.Answers[a.Outcome]++
	if a.Outcome == Broken {
		c.Report(Error, "%s was answered: %s", a, a.Error)
	}
	k := c.caller(a.Caller)
	switch {
	case len(k.early) > 0 && k.early[0].Seq == a.Seq:
		c.written(a, k.early[0])
		k.early = k.early[1:]
	case a.Seq < k.last:
		c.unwritten(a)
	default:
		k.waiting = append(k.waiting, a)
	}
}

// Entry handles the next row of the log.
func (c *Checker) Entry(e Entry) {
	if reset, ok := resetOf(e); ok && reset.After < c.replay.Rev {
		c.rewind(e, reset)
	}
	if e.Rev != mesh.Next(c.replay.Rev, e.Events) {
		c.Report(Log, "revision %d follows %d", e.Rev, c.replay.Rev)
	}
	if e.At < c.at {
		c.Report(Log, "revision %d is of %v, the one before of %v", e.Rev, e.At.Time(), c.at.Time())
	}
	c.at = max(c.at, e.At)
	for _, ev := range e.Events {
		c.event(e, ev)
	}
	c.replay, _ = mesh.Apply(c.replay, e.Rev, e.Events...)
	c.past[e.Rev%memory] = c.replay
	for _, v := range c.ahead[e.Rev] {
		c.compare(v, c.replay)
	}
	delete(c.ahead, e.Rev)
	if e.Caller == "" {
		return
	}

	k := c.caller(e.Caller)
	if e.Seq <= k.last {
		c.Report(Order, "command %d of %s is in the log at %d, after command %d", e.Seq, e.Caller, e.Rev, k.last)
		return
	}
	k.last = e.Seq
	for len(k.waiting) > 0 && k.waiting[0].Seq < e.Seq {
		c.unwritten(k.waiting[0])
		k.waiting = k.waiting[1:]
	}
	if len(k.waiting) > 0 && k.waiting[0].Seq == e.Seq {
		c.written(k.waiting[0], e)
		k.waiting = k.waiting[1:]
		return
	}
	k.early = append(k.early, e)
}

// written checks an answer whose command is in the log.
func (c *Checker) written(a Answer, e Entry) {
	switch a.Outcome {
	case Refused, Failed:
		c.Report(Trace, "%s was answered %q and is in the log at %d", a, a.Error, e.Rev)
	case Unknown:
		c.Tally.Recovered++
	case Done:
		if !bytes.Contains(e.Raw, []byte(inner(a.Effect))) {
			c.Report(Content, "%s was answered %s but revision %d says %s", a, a.Effect, e.Rev, e.Raw)
		}
	case Broken: // reported already
	}
}

// unwritten checks an answer whose command is not in the log and never will be, because its caller has newer
// commands there, or all work has stopped.
func (c *Checker) unwritten(a Answer) {
	if a.Outcome != Done {
		return
	}
	_, known := c.facts[c.fact(a.Effect)]
	switch {
	case !a.Idle:
		c.Report(Lost, "%s was acknowledged: %s", a, a.Effect)
	case a.Effect != "" && !known:
		c.Report(Lost, "%s was acknowledged as there already: %s", a, a.Effect)
	default:
		c.Tally.Repeated++
	}
}

func (a Answer) String() string { return fmt.Sprintf("%s (command %d of %s)", a.Verb, a.Seq, a.Caller) }

// inner returns an encoded event without the brackets of its list.
func inner(effect string) string { return strings.Trim(effect, "[]") }

func (c *Checker) fact(encoded string) uint64 { return maphash.String(c.seed, encoded) }

// View checks the state of a replica at some revision.
func (c *Checker) View(v View) {
	switch past := c.past[v.Rev%memory]; {
	case v.Rev > c.replay.Rev:
		c.ahead[v.Rev] = append(c.ahead[v.Rev], v)
	case past != nil && past.Rev == v.Rev:
		c.compare(v, past)
	}
}

func (c *Checker) compare(v View, replayed *mesh.Snapshot) {
	c.Tally.Views++
	if want := replayed.Digest(); v.Rev != replayed.Rev || v.Digest != want {
		c.Report(Digest, "replica %s is at %d with %s, the replayed log at %d with %s", v.Replica, v.Rev, v.Digest, replayed.Rev, want)
	}
}

// Finish checks the tables and the state of every replica after the last entry.
func (c *Checker) Finish(tables *mesh.Snapshot, finals []Final) {
	for name, k := range c.callers {
		for _, a := range k.waiting {
			c.unwritten(a)
		}
		c.Tally.Recovered += len(k.early)
		if len(k.early) > 1 {
			c.Report(Order, "%s has %d commands in the log that it was not answered, but asks one at a time", name, len(k.early))
		}
	}
	c.compare(View{"reading the tables", tables.Rev, tables.Digest()}, c.replay)
	for rev, views := range c.ahead {
		c.Report(Digest, "replica %s was at %d, the log ends at %d", views[0].Replica, rev, c.replay.Rev)
	}
	for _, f := range finals {
		c.compare(f.View, c.replay)
		if f.Mismatches > 0 {
			c.Report(Digest, "the heartbeats of replica %s found %d differences", f.Replica, f.Mismatches)
		}
		if f.Compared < len(finals) {
			c.Report(Digest, "replica %s saw %d of %d heartbeats at the last revision", f.Replica, f.Compared, len(finals))
		}
	}
}

// Acknowledged returns the newest command of each caller that was acknowledged and is not in the log yet as far as the
// checker knows.
func (c *Checker) Acknowledged() map[string]int64 {
	acked := map[string]int64{}
	for name, k := range c.callers {
		for _, a := range k.waiting {
			if a.Outcome == Done && !a.Idle {
				acked[name] = a.Seq
			}
		}
	}
	return acked
}
