package mesh

import (
	"slices"
	"strings"
)

// ProviderOIDC is the Provider of users who signed in with OpenID Connect.
const ProviderOIDC = "oidc"

// User owns nodes and pre-auth keys. A user who has signed in has a Provider and a
// ProviderID, which together identify one person.
type User struct {
	ID            UserID `json:"id"`
	Name          string `json:"name"`
	DisplayName   string `json:"displayName,omitempty"`
	Email         string `json:"email,omitempty"`
	Provider      string `json:"provider,omitempty"`
	ProviderID    string `json:"providerId,omitempty"`
	ProfilePicURL string `json:"profilePicUrl,omitempty"`
	CreatedAt     Time   `json:"createdAt"`
	// Groups holds the user's groups at the identity provider: names as in the policy, without
	// "group:", sorted and unique.
	Groups []string `json:"groups,omitempty" column:"provider_groups"`
	// Role is set by an administrator. If it is empty, RoleRules decides.
	Role Role `json:"role,omitempty"`
	// SuspendedAt is zero unless the user is suspended. SuspendedBy says by what.
	SuspendedAt Time             `json:"suspendedAt,omitempty"`
	SuspendedBy SuspensionSource `json:"suspendedBy,omitempty"`
	// HeldAt is set if the server would have suspended the user, but too many people at
	// once, so that an administrator has to decide. HeldBy is what would have suspended the user.
	HeldAt Time             `json:"heldAt,omitempty"`
	HeldBy SuspensionSource `json:"heldBy,omitempty"`
	// NeedsApproval means that the person has no access, and their new nodes need approval,
	// until an administrator approves the user.
	NeedsApproval bool `json:"needsApproval,omitempty"`
	// DirectoryID and DirectoryName are what the identity provider that pushes users calls
	// the user: its own id, and the name with which the person signs in there.
	DirectoryID   string `json:"directoryId,omitempty"`
	DirectoryName string `json:"directoryName,omitempty"`
}

// UserPut adds or replaces a user.
type UserPut struct {
	User *User `json:"user"`
}

// Kind names the event in the log.
func (UserPut) Kind() Kind          { return KindUserPut }
func (e UserPut) valid() bool       { return e.User != nil && valid(e.User.ID) }
func (e UserPut) count(c *Counters) { c.User = max(c.User, e.User.ID) }
func (e UserPut) apply(d *Draft)    { d.putUser(e.User.ID, e.User) }

// UserGone removes a user. Settle adds the events that remove the user's nodes, keys and
// sessions.
type UserGone struct {
	ID UserID `json:"id"`
}

// Kind names the event in the log.
func (UserGone) Kind() Kind       { return KindUserGone }
func (e UserGone) valid() bool    { return valid(e.ID) }
func (e UserGone) apply(d *Draft) { d.putUser(e.ID, nil) }

func (d *Draft) putUser(id UserID, u *User) {
	if old, ok := d.s.Users.Get(id); ok {
		release(d.e, &d.s.Users.byName, FoldName(old.Name), id)
		dropID(d.e, &d.s.Users.byEmail, FoldName(old.Email), id)
		dropID(d.e, &d.s.Users.byProviderID, old.ProviderID, id)
	}
	if u != nil {
		d.s.Users.byName.put(d.e, FoldName(u.Name), id)
		if u.Email != "" {
			addID(d.e, &d.s.Users.byEmail, FoldName(u.Email), id)
		}
		if u.ProviderID != "" {
			addID(d.e, &d.s.Users.byProviderID, u.ProviderID, id)
		}
	}
	d.s.Users.put(d.e, id, u)
	d.s.IdentityRev = d.s.Rev
}

// Users holds all users of a snapshot.
type Users struct {
	Table[UserID, User]
	byName       index[string, UserID]   // users by folded name
	byEmail      index[string, []UserID] // users by folded e-mail address
	byProviderID index[string, []UserID] // users by their identity at a provider
}

func newUsers() Users {
	return Users{byName: newIndex[string, UserID](), byEmail: newIndex[string, []UserID](), byProviderID: newIndex[string, []UserID]()}
}

// ByName finds a user by name, ignoring case.
func (s *Users) ByName(name string) (*User, bool) {
	return s.lookup(s.byName.at(FoldName(name)))
}

// ByProviderID finds a user by provider and by the identity there, which is case-sensitive.
func (s *Users) ByProviderID(provider, id string) (*User, bool) {
	ids, _ := s.byProviderID.at(id)
	for _, id := range ids {
		if u, ok := s.Get(id); ok && u.Provider == provider {
			return u, true
		}
	}
	return nil, false
}

// KnownAs finds users by name or e-mail address, ignoring case.
func (s *Users) KnownAs(text string) (known []*User) {
	if u, ok := s.ByName(text); ok {
		known = append(known, u)
	}
	ids, _ := s.byEmail.at(FoldName(text))
	for _, id := range ids {
		if u, ok := s.Get(id); ok && !slices.Contains(known, u) {
			known = append(known, u)
		}
	}
	return known
}

// FoldName returns the form in which user names and e-mail addresses are compared.
func FoldName(name string) string { return strings.ToLower(name) }

// ChangedSince returns the users that differ between two snapshots.
func (s *Users) ChangedSince(old *Users) []UserID { return s.changedSince(&old.Table) }
