package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Person is somebody whom an identity provider has authenticated and whom the
// configuration allows to sign in. Subject identifies the person at Issuer; everything else
// may change from one sign-in to the next.
type Person struct {
	Issuer, Subject string
	// Email is empty unless it is verified, because it identifies users in the policy.
	Email       string
	Username    string
	DisplayName string
	PictureURL  string
	// Groups holds names that GroupNames returned. If GroupsUnknown, the user's groups stay as they are.
	Groups        []string
	GroupsUnknown bool
	// Directory says that the provider is the one that pushes users and groups.
	Directory bool
	// Session is the ProviderSession of the sign-in, or empty.
	Session string `json:",omitempty"`
	// Expiry is when a node that this sign-in adds expires; zero applies the server's
	// default.
	Expiry mesh.Time
}

// ProviderSession returns how a session at a provider is remembered, so that the provider can
// end it. It is empty without a sid.
func ProviderSession(issuer, sid string) string {
	if sid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(issuer + "\n" + sid))
	return hex.EncodeToString(sum[:16])
}

// ID returns the ProviderID of the person's user.
func (p Person) ID() string {
	return strings.TrimRight(p.Issuer, "/") + "/" + strings.TrimLeft(p.Subject, "/")
}

// Label returns what the person is called before there is a user.
func (p Person) Label() string { return cmp.Or(p.Email, p.Username, p.DisplayName, p.Subject) }

// minUserName is the minimum length of a name that is derived from an identity. Other
// tools refuse shorter ones.
const minUserName = 2

// SignedIn is the result of a sign-in.
type SignedIn struct {
	User *mesh.User
	// Done reports that the same sign-in was confirmed before, and nothing was changed.
	Done bool
}

// Preview returns the user that SignIn would use, without changing anything.
func (s *Logins) Preview(p Person) (*mesh.User, error) {
	u, _, err := s.decideUser(s.ledger.World(), s.ledger.Now(), p)
	return u, err
}

// SignIn lets a device join as a node of the person who signed in. auth is as in Approve.
// The user is created at the first sign-in, and updated at later ones. Repeating a sign-in
// with the same id changes nothing.
func (s *Logins) SignIn(ctx context.Context, a mesh.Actor, auth string, p Person, id string) (SignedIn, error) {
	device, err := s.find(auth)
	if err != nil {
		return SignedIn{}, err
	}
	a.Kind, a.ID, a.Name = mesh.ActorUser, p.ID(), p.Label()
	account := sha256.Sum256([]byte(p.ID()))
	a.Once = mesh.SignInOnce(hex.EncodeToString(account[:]), id, auth+"\n"+p.ID())
	var user *mesh.User
	err = s.withPreviousPolicy(ctx, func(c previousPolicy) (err error) {
		user, err = commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
			return s.decideSignIn(w, now, device, p, c)
		})
		return err
	})
	var done *ledger.AlreadyDone
	switch {
	case errors.As(err, &done):
		u, _ := userOf(s.ledger.World().Snapshot, p)
		return SignedIn{User: u, Done: true}, nil
	case err != nil:
		return SignedIn{}, err
	}
	s.waiting.remember(device, s.ledger.Now(), s.ledger.Now().Add(answerLifetime))
	s.logFor(a).Info("device approved by sign-in", "machine", shortKey(device.MachineKey), "hostname", device.Hostname, "user", user.Name)
	return SignedIn{User: user}, nil
}

// decideSignIn decides who owns the device, and that it may join.
func (s *core) decideSignIn(w *policy.World, now mesh.Time, device WaitingLogin, p Person, c previousPolicy) (*mesh.User, []mesh.Event, error) {
	user, evs, err := s.decideUser(w, now, p)
	if err != nil {
		return nil, nil, err
	}
	login, err := decideAnswer(w, now, device)
	if err != nil {
		return nil, nil, err
	}
	before, answered := w.Logins.ByNodeKey(device.NodeKey)
	switch answered = answered && !before.Until.Reached(now); {
	case answered && before.Rejected != "":
		return nil, nil, refuse(Conflict, "authId", "an administrator rejected this device: %s", before.Rejected)
	case answered && before.User != user.ID:
		return nil, nil, refuse(Conflict, "authId", "this device was already approved for another user")
	}
	if err := c.mayHaveTags(w, user, device.Tags); err != nil {
		return nil, nil, err
	}
	login.User, login.Method, login.Expiry = user.ID, mesh.RegisterOIDC, p.Expiry
	return user, append(evs, mesh.LoginPut{Login: login}), nil
}

// decideUser returns the user of a person, and the events that create or update it. A user
// who has not signed in with the same identity is never used, even if name and e-mail
// address are the same: otherwise anyone who gets them at some provider takes over the
// user's nodes.
func (s *core) decideUser(w *policy.World, now mesh.Time, p Person) (*mesh.User, []mesh.Event, error) {
	if p.Issuer == LocalIssuer {
		u, err := localUser(w, p)
		return u, nil, err
	}
	p = p.bounded()
	was, known := userOf(w.Snapshot, p)
	if !known {
		was, known = pushedUser(w.Snapshot, p)
	}
	if known && was.Suspended() {
		return nil, nil, errSuspended()
	}
	if !known {
		name, err := nameFor(w, p)
		if err != nil {
			return nil, nil, err
		}
		u := &mesh.User{
			ID: w.Counters.User + 1, Name: name, DisplayName: p.DisplayName, Email: p.Email, ProfilePicURL: p.PictureURL, Groups: p.Groups,
			Provider: mesh.ProviderOIDC, ProviderID: p.ID(), CreatedAt: now, NeedsApproval: s.userApproval,
		}
		return u, []mesh.Event{mesh.UserPut{User: u}}, nil
	}
	u := *was
	u.Provider, u.ProviderID = mesh.ProviderOIDC, cmp.Or(was.ProviderID, p.ID())
	u.DisplayName, u.ProfilePicURL = cmp.Or(p.DisplayName, was.DisplayName), cmp.Or(p.PictureURL, was.ProfilePicURL)
	if p.Email != "" && knownBy(w, "email", p.Email, was.ID) == nil { // otherwise it now belongs to somebody else
		u.Email = p.Email
	}
	if !p.GroupsUnknown {
		u.Groups, _ = GroupNames(append(pushedGroups(w.Snapshot, was.ID), p.Groups...))
	}
	if reflect.DeepEqual(&u, was) {
		return was, nil, nil
	}
	evs := []mesh.Event{mesh.UserPut{User: &u}}
	if !slices.Equal(u.Groups, was.Groups) { // autoApprovers may refer to them
		evs = append(evs, renamedOwner(w, now, &u)...)
	}
	return &u, evs, nil
}

// nameFor returns the name of a new user: the user name at the provider, or else the e-mail
// address, the name of the person, or a name derived from the identity. A user name or
// e-mail address that is taken is an error and not a reason to choose another: an
// administrator has to know whether the two are the same person.
func nameFor(w *policy.World, p Person) (string, error) {
	if err := knownBy(w, "email", p.Email, 0); err != nil {
		return "", resolve("email address", p.Email)
	}
	for i, name := range []string{p.account(), p.Email, p.DisplayName} {
		if name = correctName(name); len(name) < minUserName || strings.Count(name, "@") > 1 || CheckUserName(name) != nil {
			continue
		}
		if nameFree(w, name, 0) == nil {
			return name, nil
		}
		if i == 0 {
			return "", resolve("name", name)
		}
	}
	sum := sha256.Sum256([]byte(p.ID()))
	return "user-" + hex.EncodeToString(sum[:8]), nil
}

// linkable is the path of refusals that linking a user to the account resolves.
const linkable = "user"

// Linkable reports whether a sign-in was refused because a user has to be linked to the
// account first.
func Linkable(err error) bool {
	refusal := new(Refusal)
	return errors.As(err, &refusal) && refusal.Reason == Conflict && refusal.Path == linkable
}

func resolve(what, text string) error {
	return refuse(Conflict, linkable, "another user already has the %s %s, and has not signed in with this account. "+
		"Ask an administrator to link the account to that user, or to rename that user", what, text)
}

// account returns the user name at the provider. A name with a domain looks like an e-mail
// address. Unless it is the verified one, the domain is removed.
func (p Person) account() string {
	local, _, address := strings.Cut(p.Username, "@")
	if !address || mesh.FoldName(p.Username) == mesh.FoldName(p.Email) {
		return p.Username
	}
	return local
}

// bounded drops texts that users cannot have. The identity stays as it is.
func (p Person) bounded() Person {
	for _, text := range []*string{&p.Email, &p.Username, &p.DisplayName, &p.PictureURL} {
		if checkText("", *text, maxUserText) != nil {
			*text = ""
		}
	}
	p.Groups, _ = GroupNames(p.Groups)
	return p
}
