package control

import (
	"fmt"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// The brake: within brakePeriod, the server suspends brakeLeast people, or one in brakeShare
// if that is more, without asking. A provider that is broken or configured wrongly refuses
// everyone. Fewer than that leave a company within an hour.
const (
	brakePeriod = time.Hour
	brakeLeast  = 3
	brakeShare  = 10
)

// braked reports whether an administrator has to decide on further suspensions: too many
// people were suspended a short time ago, or somebody is already held. Strangers do not count:
// otherwise, anyone with accounts at a public provider could pull the brake.
func (s *core) braked(w *policy.World, now mesh.Time) bool {
	people, recent, stranger := 0, 0, strangers(w.Snapshot)
	for u := range w.Users.All() {
		switch {
		case stranger(u):
			continue
		case u.Held():
			return true
		case u.Suspended() && u.SuspendedBy != mesh.SuspendedByAdmin && now < u.SuspendedAt.Add(brakePeriod):
			recent++
		}
		if u.Provider == mesh.ProviderOIDC || u.DirectoryName != "" {
			people++
		}
	}
	return recent >= max(brakeLeast, people/brakeShare)
}

// strangers returns a function that reports whether a user waits for approval, and has no
// access that could be taken away: no administrator has approved one of their devices either.
func strangers(w *mesh.Snapshot) func(*mesh.User) bool {
	var admitted map[mesh.UserID]bool
	return func(u *mesh.User) bool {
		if !u.NeedsApproval || w.Nodes.OwnedCount(u.ID) == 0 {
			return u.NeedsApproval
		}
		if admitted == nil {
			admitted = map[mesh.UserID]bool{}
			for n := range w.Nodes.Approved() {
				admitted[n.Owner] = true
			}
		}
		return !admitted[u.ID]
	}
}

// release returns a user without a hold that the provider has just disproved by confirming
// the account.
func release(u *mesh.User) (*mesh.User, bool) {
	if u.HeldBy != mesh.SuspendedByRecheck && u.HeldBy != mesh.SuspendedByLogout {
		return u, false
	}
	return u.Restore(), true
}

func (s *core) logHeld(u *mesh.User, source mesh.SuspensionSource) {
	s.log.Warn("suspension held, because too many people would be suspended at once; confirm it with fairlead users suspend, or dismiss it with fairlead users restore",
		"user", u.Name, "source", source)
}

// HoldWarning says that an administrator has to decide on suspensions, or returns "". It
// names nobody, because strangers read it.
func (s *Users) HoldWarning() string {
	n := 0
	for u := range s.ledger.World().Users.All() {
		if u.Held() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("suspensions held: the identity provider no longer accepts %d people, which is too many at once. They keep their access. "+
		"Check the provider; then confirm with \"fairlead users suspend --held\", or dismiss with \"fairlead users restore --held\"", n)
}
