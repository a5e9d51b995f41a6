package fence

import "time"

// where the database is, as far as this replica knows.
type where int

const (
	unknown   where = iota // nobody else is known to have it, but somebody did not answer
	nowhere                // no other replica has it
	elsewhere              // another replica has it
)

// verdict is what the others answered.
type verdict struct {
	at time.Time
	where
	// rounds counts the rounds in which another replica had the database while
	// this one had not. Rounds without an answer neither count nor reset it.
	rounds int
}

// sureAfter is how many rounds it takes before clients are sent away: a process
// that was stopped for a while has the database again a moment later.
const sureAfter = 2

// claims holds when each peer last answered that it has the database while this
// replica had lost it, by the ID that the peer last published. A claim stands
// until the peer retracts it, this replica has the database again, or the peer
// has been silent for Times.HoldFor: otherwise a single lost answer would open the
// fence.
type claims map[string]time.Time

// judge concludes from the answers of one round, which are nil for peers that did
// not answer. Without lost, this replica has the database itself.
func (f *Fence) judge(at time.Time, lost bool, peers []Peer, answers []*answer) *verdict {
	v, before, last := &verdict{at: at, where: nowhere}, f.verdict.Load(), f.config.Fresh().Last
	standing, confirmed := claims{}, false
	for i, p := range peers {
		claim := f.claims[p.ID]
		stands := claim.After(last) && at.Sub(claim) < f.times.HoldFor
		switch a := answers[i]; {
		case a == nil && stands:
			standing[p.ID] = claim
		case a == nil:
			if v.where == nowhere {
				v.where = unknown
			}
		// A peer that made the claim and has the database only since a moment ago
		// has restarted.
		case a.Database >= f.times.SteadyFor, a.Database > 0 && stands:
			standing[p.ID], confirmed = at, true
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
