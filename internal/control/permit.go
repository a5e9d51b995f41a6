package control

import (
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// callerKey is the API key that asks. Without one there is no bound: whoever opens the
// local socket may do everything. A key that is gone meanwhile opens nothing.
func callerKey(w *policy.World, a mesh.Actor) (key *mesh.APIKey, bound bool) {
	if a.Kind != mesh.ActorKey {
		return nil, false
	}
	if id, err := strconv.ParseInt(a.ID, 10, 64); err == nil {
		if k, ok := w.APIKey(mesh.KeyID(id)); ok {
			return k, true
		}
	}
	return &mesh.APIKey{}, true
}

// mayDeleteUser refuses keys that open users, but not what goes with this one. Who may
// delete users at all needs no more than that role for their pre-auth keys.
func mayDeleteUser(w *policy.World, a mesh.Actor, u *mesh.User) error {
	key, bound := callerKey(w, a)
	if !bound {
		return nil
	}
	if !key.Allows(mesh.NounNodes, mesh.RoleOperator) && w.NodesOwned(u.ID) > 0 {
		return errGoesToo(key, u, "nodes", mesh.NounNodes)
	}
	if key.Allows(mesh.NounPreAuthKeys, mesh.RoleOperator) {
		return nil
	}
	for k := range w.PreAuthKeys() {
		if k.User == u.ID {
			return errGoesToo(key, u, "pre-auth keys", mesh.NounPreAuthKeys)
		}
	}
	return nil
}

func errGoesToo(key *mesh.APIKey, u *mesh.User, what string, n mesh.Noun) error {
	return refuse(Forbidden, "", "user %s has %s, which are deleted with the user; this needs the scope %s too; the key has %v", u.Name, what, n, key.Scopes)
}

// mayEndKey refuses to end a key that opens more than the one that asks.
func mayEndKey(w *policy.World, a mesh.Actor, k *mesh.APIKey) error {
	if key, bound := callerKey(w, a); bound && !key.Covers(k.Access) {
		return refuse(Forbidden, "", "a key cannot end one that opens more than itself; use one that opens as much as %s, or the local socket", k.Prefix)
	}
	return nil
}
