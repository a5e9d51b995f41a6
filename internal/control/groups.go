package control

import (
	"context"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// maxUserGroups is how many groups of the identity provider a user can have.
const maxUserGroups = 500

// GroupName returns the name that a group of an identity provider has in the policy, without "group:". It differs
// from the name at the provider only in what the policy cannot express: a leading slash, which Keycloak adds, is
// removed, and spaces become hyphens. It returns false if the policy cannot name the group.
func GroupName(text string) (string, bool) {
	name := strings.Join(strings.Fields(strings.TrimPrefix(text, "/")), "-")
	return name, lang.IsGroup(lang.PrefixGroup+name) && checkText("", name, maxUserText) == nil
}

// GroupNames returns the names of a person's groups in the policy, sorted and unique, and the groups that have no
// such name or are too many.
func GroupNames(texts []string) (names, dropped []string) {
	for _, text := range texts {
		if name, ok := GroupName(text); ok {
			names = append(names, name)
		} else {
			dropped = append(dropped, text)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxUserGroups {
		dropped = append(dropped, names[maxUserGroups:]...)
		names = slices.Clip(names[:maxUserGroups])
	}
	return names, dropped
}

// SaveUser creates or updates the user of a person who signed in.
func (s *Logins) SaveUser(ctx context.Context, a mesh.Actor, p Person) (*mesh.User, error) {
	a.Kind, a.ID, a.Name = mesh.ActorUser, p.ID(), p.Label()
	return commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		return s.decideUser(w, now, p)
	})
}
