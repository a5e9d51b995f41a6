package fence

import (
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

// where says whether other replicas have the database, as far as this one knows.
type where int

const (
	unknown   where = iota // no other replica is known to have it, but some did not answer
	nowhere                // no other replica has it
	elsewhere              // another replica has it
)

// verdict is the conclusion from the answers of the other replicas.
type verdict struct {
	at time.Time
	where
	// rounds counts the rounds in which another replica had the database while
	// this one did not. Rounds without an answer neither increase nor reset it.
	rounds int
}

// sureAfter is how many rounds it takes before clients are sent away. After one
// round, a process that was only paused usually has the database again.
const sureAfter = 2

// claims holds when each peer last answered that it has the database while this replica
// had lost it, by the ID that the peer last published. A peer that knows what this
// replica missed during a pause makes the same claim. A claim is valid until the peer
// retracts it, this replica has the database again, or the peer has been silent for
// Times.HoldFor: otherwise a single lost answer would open the fence.
type claims map[string]time.Time

// judge derives a verdict from the answers of one round, which are nil for peers that
// did not answer. fresh is how up to date this replica was when it asked.
func (f *Fence) judge(at time.Time, fresh ledger.Freshness, peers []Peer, answers []*answer) *verdict {
	v, before, lost := &verdict{at: at, where: nowhere}, f.verdict.Load(), f.lost(fresh)
	standing, confirmed := claims{}, false
	for i, p := range peers {
		claim := f.claims[p.ID]
		stands := claim.After(fresh.Last) && at.Sub(claim) < f.times.HoldFor
		switch a := answers[i]; {
		case a == nil && stands:
			standing[p.ID] = claim
		case a == nil:
			if v.where == nowhere {
				v.where = unknown
			}
		// A peer with a valid claim that has had the database only for a moment has
		// restarted.
		case a.Database >= f.times.SteadyFor, a.Database > 0 && stands:
			standing[p.ID], confirmed = at, true
		case !fresh.Paused.IsZero() && (a.Database > 0 || f.knowsMore(a, fresh)):
			standing[p.ID] = at
		}
	}
	if len(standing) > 0 {
		v.where = elsewhere
	}
	f.claims = nil
	if !lost {
		return v
	}
	f.claims = standing
	if v.where == elsewhere && f.counts(before, at) {
		v.rounds = before.rounds
	}
	if confirmed {
		v.rounds++
	}
	return v
}

// knowsMore reports whether the replica that answered has seen changes that this one has
// missed during a pause. In an outage without a pause, no replica has: all of them had
// seen everything when it began.
func (f *Fence) knowsMore(a *answer, fresh ledger.Freshness) bool {
	return a.State != "" && a.State != f.config.State() && a.Age < fresh.Age(time.Now())
}
