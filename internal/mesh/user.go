package mesh

import (
	"iter"
	"slices"
	"strings"
)

// User owns nodes and pre-auth keys.
type User struct {
	ID            UserID `json:"id"`
	Name          string `json:"name"`
	DisplayName   string `json:"displayName,omitempty"`
	Email         string `json:"email,omitempty"`
	Provider      string `json:"provider,omitempty"`
	ProviderID    string `json:"providerId,omitempty"`
	ProfilePicURL string `json:"profilePicUrl,omitempty"`
	CreatedAt     Time   `json:"createdAt"`
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

// UserGone removes a user. Settle adds the events that remove its nodes and keys.
type UserGone struct {
	ID UserID `json:"id"`
}

// Kind names the event in the log.
func (UserGone) Kind() Kind       { return KindUserGone }
func (e UserGone) valid() bool    { return valid(e.ID) }
func (e UserGone) apply(d *Draft) { d.putUser(e.ID, nil) }

func (d *Draft) putUser(id UserID, u *User) {
	if old, ok := d.s.User(id); ok {
		d.s.userByName.drop(d.e, FoldName(old.Name))
		dropID(d.e, &d.s.usersByEmail, FoldName(old.Email), id)
	}
	if u != nil {
		d.s.userByName.put(d.e, FoldName(u.Name), id)
		if u.Email != "" {
			addID(d.e, &d.s.usersByEmail, FoldName(u.Email), id)
		}
	}
	d.s.users.put(d.e, int64(id), u)
	d.s.IdentityRev = d.s.Rev
}

// User returns the user with this id.
func (s *Snapshot) User(id UserID) (*User, bool) { return found(s.users.at(int64(id))) }

// UserByName finds a user by name, ignoring case.
func (s *Snapshot) UserByName(name string) (*User, bool) {
	id, ok := s.userByName.at(FoldName(name))
	if !ok {
		return nil, false
	}
	return s.User(id)
}

// KnownAs finds users by name or e-mail address, ignoring case.
func (s *Snapshot) KnownAs(text string) (known []*User) {
	if u, ok := s.UserByName(text); ok {
		known = append(known, u)
	}
	ids, _ := s.usersByEmail.at(FoldName(text))
	for _, id := range ids {
		if u, ok := s.User(id); ok && !slices.Contains(known, u) {
			known = append(known, u)
		}
	}
	return known
}

// FoldName returns the form in which user names and e-mail addresses are compared.
func FoldName(name string) string { return strings.ToLower(name) }

// Users yields all users, sorted by id.
func (s *Snapshot) Users() iter.Seq[*User] { return s.users.all() }

// UserCount is the number of users.
func (s *Snapshot) UserCount() int { return s.users.count }

// ChangedUsers returns the users that differ between s and an older snapshot.
func (s *Snapshot) ChangedUsers(old *Snapshot) []UserID { return changed[UserID](&s.users, &old.users) }
