package mesh

import "reflect"

// Epoch describes the newest epoch of the history. A new one begins when the database
// may have lost acknowledged changes, so that revisions and ids that were used by lost
// changes are not used again.
type Epoch struct {
	Number int64    `json:"number"`
	After  Revision `json:"after"` // the last revision before it
	Rev    Revision `json:"rev"`   // its first revision
	// Timeline is that of the PostgreSQL server at that time.
	Timeline int64 `json:"timeline,omitempty"`
	// Loss is the last known loss. It may have been in an earlier epoch.
	Loss Loss `json:"loss,omitzero"`
}

// Loss describes acknowledged changes that the database lost.
type Loss struct {
	Rev     Revision `json:"rev"`               // the revision at which it was recorded
	At      Time     `json:"at"`                // when it was recorded
	From    Revision `json:"from"`              // the first lost revision
	To      Revision `json:"to"`                // the last lost revision that a replica had seen
	AtLeast bool     `json:"atLeast,omitempty"` // earlier revisions may be lost too
}

// Skipped is how many revisions, and SkippedIDs how many ids of each kind, an epoch
// skips after the newest one that a replica had seen: another replica, which is no longer
// running, may have seen newer ones.
const (
	Skipped    = 1000
	SkippedIDs = 100
)

// HistoryReset begins an epoch. It is the only event of its entry.
type HistoryReset struct {
	Epoch Epoch `json:"epoch"`
	// Counters are the least values of the counters.
	Counters Counters `json:"counters"`
}

// Kind names the event in the log.
func (HistoryReset) Kind() Kind    { return KindHistoryReset }
func (e HistoryReset) valid() bool { return e.Epoch.Rev > e.Epoch.After }
func (HistoryReset) apply(*Draft)  {} // it only moves counters
func (e HistoryReset) count(c *Counters) {
	version := c.Policy // the newest version, which exists
	*c = c.AtLeast(e.Counters)
	c.Policy, c.LostPolicy = version, max(c.LostPolicy, e.Counters.Policy)
	if e.Counters.V4.IsValid() {
		c.V4, c.V6 = e.Counters.V4, e.Counters.V6
	}
	c.Epoch = e.Epoch
}

// Skips reports whether an epoch skipped a revision: nothing in its history has it.
func (e Epoch) Skips(rev Revision) bool { return e.After < rev && rev < e.Rev }

// Next returns the revision of an entry with these events, given that of the entry before
// it.
func Next(rev Revision, evs []Event) Revision {
	if len(evs) == 1 {
		if e, ok := evs[0].(HistoryReset); ok && e.Epoch.After == rev {
			return e.Epoch.Rev
		}
	}
	return rev + 1
}

// skip returns the counters after the ids that a lost replica may have assigned.
func (c Counters) skip(n int64) Counters {
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if id := v.Field(i); id.Kind() == reflect.Int64 {
			id.SetInt(id.Int() + n)
		}
	}
	return c
}

// NextPolicy returns the next version of the policy.
func (c Counters) NextPolicy() PolicyVersion { return max(c.Policy, c.LostPolicy) + 1 }

// NewEpoch returns the event that begins the next epoch after s, on a timeline. seen holds
// the newest revision and the counters of the history that this replica had seen before.
// If it did not contain more than s, loss is zero.
func NewEpoch(s *Snapshot, seen Revision, counters Counters, timeline int64, loss Loss) HistoryReset {
	e := HistoryReset{Counters: counters.AtLeast(s.Counters).skip(SkippedIDs)}
	e.Epoch = Epoch{
		Number: max(s.Counters.Epoch.Number, counters.Epoch.Number) + 1, After: s.Rev, Rev: max(s.Rev, seen) + Skipped + 1, Timeline: timeline, Loss: s.Counters.Epoch.Loss,
	}
	if loss.To != 0 {
		loss.Rev = e.Epoch.Rev
		e.Epoch.Loss = loss
	}
	e.Counters.Epoch = Epoch{}
	return e
}
