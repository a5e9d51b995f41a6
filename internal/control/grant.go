package control

import (
	"cmp"
	"slices"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// grant is what allows a node to join: a pre-auth key, an administrator's approval, or the
// sign-in of its owner. If method is empty, nothing does.
type grant struct {
	method   mesh.RegisterMethod
	user     mesh.UserID // zero for a key that has only tags
	key      *mesh.PreAuthKey
	login    *mesh.Login
	retry    *mesh.Node // the node that this machine registered with the same single-use key
	rejected string
}

// retryWithin is how long a machine may register again with a single-use key that it
// has just used. "tailscale up --force-reauth" can register twice, with two node keys.
const retryWithin = time.Minute

func grantFor(w *policy.World, now mesh.Time, j Joining) (grant, error) {
	if j.PreAuthKey != "" {
		return grantOfKey(w, now, j.PreAuthKey, j.MachineKey)
	}
	l, ok := w.Logins.ByNodeKey(j.NodeKey)
	switch {
	case !ok, l.MachineKey != j.MachineKey, l.Until.Reached(now):
		return grant{}, nil
	case l.Rejected != "":
		// A rejection stays until it expires, because clients keep asking.
		return grant{rejected: l.Rejected}, nil
	case isSuspended(w, l.User):
		return grant{}, errSuspended()
	}
	return grant{method: cmp.Or(l.Method, mesh.RegisterApproved), user: l.User, login: l}, nil
}

// grantOfKey checks a pre-auth key. proven is the client's machine key if it has proven it,
// and zero otherwise.
func grantOfKey(w *policy.World, now mesh.Time, text string, proven key.MachinePublic) (grant, error) {
	k, ok := identity.PreAuthKey(w.Snapshot, text)
	var retry *mesh.Node
	switch {
	case !ok:
		return grant{}, errUnknownKey()
	case k.Expiry.Reached(now):
		return grant{}, refuse(BadKey, "preAuthKey", "the key has expired; ask your administrator for a new one")
	case isSuspended(w, k.User):
		return grant{}, refuse(Suspended, "preAuthKey", "the user of the key is suspended; ask your administrator for another key")
	case k.Used && !k.Reusable:
		if retry = retryOf(w, now, k, proven); retry == nil {
			return grant{}, refuse(BadKey, "preAuthKey", "the key is single-use and was already used; ask your administrator for a new one")
		}
	}
	return grant{method: mesh.RegisterAuthKey, user: k.User, key: k, retry: retry}, nil
}

// retryOf returns the node that this machine has just registered with a single-use key, or
// nil if there is none or it is too late for a retry.
func retryOf(w *policy.World, now mesh.Time, k *mesh.PreAuthKey, machine key.MachinePublic) *mesh.Node {
	if machine.IsZero() || k.LastUse.At.Add(retryWithin).Reached(now) {
		return nil
	}
	for _, n := range w.Nodes.ByMachine(machine) {
		if n.PreAuthKey == k.ID && !n.KeyExpired && !n.Expired(now) {
			return n
		}
	}
	return nil
}

// tags returns the tags of the key and those that the device requested. It fails if the
// device may not have one of them.
func (g grant) tags(w *policy.World, asked []string, trial previousPolicy) ([]string, error) {
	asked, err := checkTags("tags", asked)
	if err != nil {
		return nil, err
	}
	user, _ := w.Users.Get(g.user)
	for _, tag := range asked {
		if err := trial.mayTag(w, user, g.key, tag); err != nil {
			return nil, err
		}
	}
	if g.key != nil {
		asked = slices.Concat(g.key.Tags, asked)
	}
	slices.Sort(asked)
	if asked = slices.Compact(asked); len(asked) == 0 {
		return nil, nil
	}
	return asked, nil
}

// earlier returns the node that this machine already has for the same user, or for tags if
// the node is to be tagged. A machine on which several people sign in has one node for
// each. If two match, the client's previous node key decides.
func (g grant) earlier(w *policy.World, j Joining, tagged bool) *mesh.Node {
	if g.retry != nil {
		return g.retry
	}
	var best *mesh.Node
	rank := 0
	for _, n := range w.Nodes.ByMachine(j.MachineKey) {
		fits := g.user != 0 && (n.Owner == g.user || n.CreatedBy == g.user) || tagged && n.Tagged()
		r := 1
		if n.Tagged() == tagged {
			r = 2
		}
		if n.NodeKey == j.OldNodeKey {
			r = 3
		}
		if fits && r > rank {
			best, rank = n, r
		}
	}
	return best
}

// spent returns the events that record that the grant was used.
func (g grant) spent(now mesh.Time, from string) (evs []mesh.Event) {
	if g.login != nil {
		return []mesh.Event{mesh.LoginGone{ID: g.login.ID}}
	}
	if g.retry != nil {
		return nil // already counted by the first use, which also started retryWithin
	}
	if !g.key.Used {
		used := *g.key
		used.Used = true
		evs = append(evs, mesh.PreAuthKeyPut{Key: &used})
	}
	return append(evs, mesh.PreAuthKeyUsed{ID: g.key.ID, Use: mesh.PreAuthKeyUse{KeyUse: mesh.KeyUse{At: now, From: from}, Count: g.key.LastUse.Count + 1}})
}

func errUnknownKey() error {
	return refuse(BadKey, "preAuthKey", "the key is unknown; ask your administrator for a new one")
}
