package control

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Users implements the use cases for users.
type Users struct{ *core }

// NewUser is the input for creating a user.
type NewUser struct {
	Name, DisplayName, Email, PictureURL string
}

// TaggedDevices is shown as the owner of tagged nodes. No user may have this name.
const TaggedDevices = "tagged-devices"

const (
	maxUserName = 128
	maxUserText = 512
)

var userName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._@-]*$`)

// CheckUserName returns what is wrong with a name, and suggests a valid one.
func CheckUserName(name string) error {
	switch {
	case name == "":
		return refuse(Invalid, "name", "a user name is required")
	case len(name) > maxUserName:
		return refuse(Invalid, "name", "a user name can have at most %d characters", maxUserName)
	case mesh.FoldName(name) == TaggedDevices:
		return refuse(Invalid, "name", "%s is reserved: it stands for tagged nodes; choose another name", TaggedDevices)
	case userName.MatchString(name):
		return nil
	}
	const rule = "it must begin with a letter, followed by letters, digits, '.', '_', '-' or '@'"
	if better := correctName(name); better != "" && CheckUserName(better) == nil {
		return refuse(Invalid, "name", "invalid user name %q: %s; try %q", name, rule, better)
	}
	return refuse(Invalid, "name", "invalid user name %q: %s", name, rule)
}

// correctName returns a valid name similar to this one, or "" if a letter has no plain
// form: without that letter it would be a different name.
func correctName(name string) string {
	var better strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(name)) {
		switch {
		case r == ' ' || r == '\t':
			better.WriteByte('-')
		case r >= utf8.RuneSelf:
			plain := plainLetter(r)
			if plain == "" {
				return ""
			}
			better.WriteString(plain)
		case userName.MatchString("a" + string(r)):
			better.WriteRune(r)
		}
	}
	return strings.TrimLeft(better.String(), "0123456789._@-")
}

// plainLetter returns the ASCII spelling of a lower-case Latin letter such as é or ß, or
// "" for other characters.
func plainLetter(r rune) string {
	for _, row := range [...]struct{ letters, plain string }{
		{"àáâãäåāăą", "a"},
		{"çćĉċč", "c"},
		{"ďđð", "d"},
		{"èéêëēĕėęě", "e"},
		{"ĝğġģ", "g"},
		{"ĥħ", "h"},
		{"ìíîïĩīĭįı", "i"},
		{"ĵ", "j"},
		{"ķ", "k"},
		{"ĺļľł", "l"},
		{"ñńņň", "n"},
		{"òóôõöøōŏő", "o"},
		{"ŕŗř", "r"},
		{"śŝşšș", "s"},
		{"ţťŧț", "t"},
		{"ùúûüũūŭůűų", "u"},
		{"ŵ", "w"},
		{"ýÿŷ", "y"},
		{"źżž", "z"},
		{"ß", "ss"},
		{"æ", "ae"},
		{"œ", "oe"},
		{"þ", "th"},
	} {
		if strings.ContainsRune(row.letters, r) {
			return row.plain
		}
	}
	return ""
}

// FindUser finds a user by id or by name. A name cannot begin with a digit, so the two are
// never ambiguous.
func FindUser(s *mesh.Snapshot, ref string) (*mesh.User, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		if u, ok := s.Users.Get(mesh.UserID(id)); ok {
			return u, nil
		}
	} else if u, ok := s.Users.ByName(ref); ok {
		return u, nil
	}
	return nil, ErrNoUser(ref)
}

// ErrNoUser returns the refusal for a user that does not exist.
func ErrNoUser(ref string) error {
	if mesh.FoldName(ref) == TaggedDevices {
		return refuse(NotFound, "user", "%s is not a user: it stands for tagged nodes; filter by tag instead: fairlead nodes list --tag tag:server", TaggedDevices)
	}
	return refuse(NotFound, "user", "unknown user %q; list users with: fairlead users list", ref)
}

// Create adds a user.
func (s *Users) Create(ctx context.Context, a mesh.Actor, in NewUser) (*mesh.User, error) {
	if err := CheckUserName(in.Name); err != nil {
		return nil, err
	}
	for _, f := range []struct{ path, text string }{{"displayName", in.DisplayName}, {"email", in.Email}, {"pictureUrl", in.PictureURL}} {
		if err := checkText(f.path, f.text, maxUserText); err != nil {
			return nil, err
		}
	}
	trial, err := s.previousPolicy(ctx)
	if err != nil {
		return nil, err
	}
	user, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		if err := cmp.Or(nameFree(w, in.Name, 0), knownBy(w, "email", in.Email, 0)); err != nil {
			return nil, nil, err
		}
		user := &mesh.User{
			ID: w.Counters.User + 1, Name: in.Name, DisplayName: in.DisplayName, Email: in.Email, ProfilePicURL: in.PictureURL, CreatedAt: now,
		}
		if err := trial.mayChangeNames(s.core, w, a, nil, user); err != nil {
			return nil, nil, err
		}
		return user, []mesh.Event{mesh.UserPut{User: user}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("user created", "user", user.Name)
	s.warnOfCapitals(user)
	return user, nil
}

func (s *Users) warnOfCapitals(u *mesh.User) {
	if u.Name != mesh.FoldName(u.Name) {
		s.log.Warn("user name has uppercase letters; lowercase is recommended", "user", u.Name)
	}
}

func nameFree(w *policy.World, name string, except mesh.UserID) error {
	if u, ok := w.Users.ByName(name); ok && u.ID != except {
		return refuse(Conflict, "name", "user %q already exists; user names are not case-sensitive", u.Name)
	}
	return knownBy(w, "name", name, except)
}

// knownBy refuses a name or an e-mail address that identifies another user: policies and
// devices refer to people by either, and would confuse the two.
func knownBy(w *policy.World, path, text string, except mesh.UserID) error {
	switch mesh.FoldName(text) {
	case "":
		return nil
	case TaggedDevices:
		return refuse(Invalid, path, "%s is reserved: it stands for tagged nodes; choose another", TaggedDevices)
	}
	for _, u := range w.Users.KnownAs(text) {
		if u.ID != except {
			return refuse(Conflict, path, "user %q already has the name or email address %q; the policy could not tell the two users apart", u.Name, text)
		}
	}
	return nil
}

// Rename renames a user. If ifRevision is given, the user must have this UserRevision.
func (s *Users) Rename(ctx context.Context, a mesh.Actor, ref, name, ifRevision string) (*mesh.User, error) {
	if err := CheckUserName(name); err != nil {
		return nil, err
	}
	trial, err := s.previousPolicy(ctx)
	if err != nil {
		return nil, err
	}
	type renaming struct{ before, after *mesh.User }
	out, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none renaming, _ []mesh.Event, _ error) {
		was, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		if err := nameFree(w, name, was.ID); err != nil {
			return none, nil, err
		}
		if was.Name == name {
			return renaming{was, was}, nil, nil
		}
		user := *was
		user.Name = name
		if err := trial.mayChangeNames(s.core, w, a, was, &user); err != nil {
			return none, nil, err
		}
		return renaming{was, &user}, append([]mesh.Event{mesh.UserPut{User: &user}}, renamedOwner(w, now, &user)...), nil
	})
	if err != nil {
		return nil, err
	}
	if out.after.Name != out.before.Name {
		s.logFor(a).Info("user renamed", "user", out.after.Name, "was", out.before.Name)
		s.warnOfCapitals(out.after)
	}
	return out.after, nil
}

// UserDeletion is the result of deleting a user.
type UserDeletion struct {
	User  mesh.UserID
	Nodes int // how many nodes were deleted

	name string
}

// Answer returns how many nodes were deleted, and the user's id.
func (d UserDeletion) Answer() string { return fmt.Sprint(d.Nodes, d.User) }

// Delete deletes a user with all nodes and pre-auth keys. The tagged nodes that the user
// added stay unless tagged is set. ifRevision is as in Rename. An API key must also have
// the permission to delete what is deleted with the user.
func (s *Users) Delete(ctx context.Context, a mesh.Actor, ref, ifRevision string, tagged bool) (UserDeletion, error) {
	trial, err := s.previousPolicy(ctx)
	if err != nil {
		return UserDeletion{}, err
	}
	out, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (none UserDeletion, _ []mesh.Event, _ error) {
		user, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		var brought []*mesh.Node
		if tagged {
			brought = TaggedBy(w.Snapshot)[user.ID]
		}
		if err := cmp.Or(s.mayDeleteUser(w, a, user, brought), trial.mayChangeNames(s.core, w, a, user, nil), s.keepAdmin(w, a, user.ID)); err != nil {
			return none, nil, err
		}
		return UserDeletion{user.ID, w.Nodes.OwnedCount(user.ID) + len(brought), user.Name}, deleteWithNodes(user, brought), nil
	})
	if err != nil {
		return UserDeletion{}, err
	}
	s.logFor(a).Info("user deleted", "user", out.name, "nodes", out.Nodes, "tagged_nodes_kept", len(TaggedBy(s.ledger.World().Snapshot)[out.User]))
	return out, nil
}

// TaggedBy groups the tagged nodes by the user who added them. That user may have been
// deleted.
func TaggedBy(s *mesh.Snapshot) map[mesh.UserID][]*mesh.Node {
	by := map[mesh.UserID][]*mesh.Node{}
	for n := range s.Nodes.All() {
		if n.Tagged() && n.CreatedBy != 0 {
			by[n.CreatedBy] = append(by[n.CreatedBy], n)
		}
	}
	return by
}

// deleteWithNodes returns the events that delete a user and these tagged nodes. Settle adds
// those for what the user owns.
func deleteWithNodes(u *mesh.User, tagged []*mesh.Node) []mesh.Event {
	evs := []mesh.Event{mesh.UserGone{ID: u.ID}}
	for _, n := range tagged {
		evs = append(evs, mesh.NodeGone{ID: n.ID})
	}
	return evs
}
