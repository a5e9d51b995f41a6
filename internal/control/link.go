package control

import (
	"context"
	"net/url"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Link lets the person with an account at a provider sign in as a user. Only an
// administrator can tell that the two are the same person. account is as in Person.ID.
// With replace, an earlier account of the user is replaced. ifRevision is as in Rename.
func (s *Users) Link(ctx context.Context, a mesh.Actor, ref, account string, replace bool, ifRevision string) (*mesh.User, error) {
	if err := checkAccount(account); err != nil {
		return nil, err
	}
	return s.changeAccount(ctx, a, ref, ifRevision, func(w *policy.World, u *mesh.User) error {
		for _, id := range []string{account, escapedAccount(account)} {
			if other, ok := w.Users.ByProviderID(mesh.ProviderOIDC, id); ok && other.ID != u.ID {
				return refuse(Conflict, "providerId", "user %q is linked to this account; unlink or delete that user first: fairlead users unlink %[1]s", other.Name)
			}
		}
		if u.ProviderID != "" && u.ProviderID != account && !replace {
			return refuse(Conflict, "replace", "user %q is linked to %s; set replace to link the user to another account, which ends the access of that one", u.Name, u.ProviderID)
		}
		u.Provider, u.ProviderID = mesh.ProviderOIDC, account
		return nil
	})
}

// Unlink removes the account of a user, and the groups that it had, or the user's passkeys. The person can no longer
// sign in as this user. ifRevision is as in Rename.
func (s *Users) Unlink(ctx context.Context, a mesh.Actor, ref, ifRevision string) (*mesh.User, error) {
	return s.changeAccount(ctx, a, ref, ifRevision, func(_ *policy.World, u *mesh.User) error {
		u.Provider, u.ProviderID = "", ""
		return nil
	})
}

func (s *Users) changeAccount(ctx context.Context, a mesh.Actor, ref, ifRevision string, change func(*policy.World, *mesh.User) error) (*mesh.User, error) {
	type result struct{ before, after *mesh.User }
	out, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (none result, _ []mesh.Event, _ error) {
		if err := s.mayGiveAccess(w, a, "changing the account of a user", "the account gets all the access of the user"); err != nil {
			return none, nil, err
		}
		was, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		u := *was
		if err := change(w, &u); err != nil {
			return none, nil, err
		}
		if u.ProviderID == was.ProviderID && u.Provider == was.Provider {
			if u.Provider == "" { // there may be an invitation
				return result{was, was}, dropPasskeys(w.Snapshot, u.ID), nil
			}
			return result{was, was}, nil, nil
		}
		u.Groups = nil // those of the earlier account
		if s.administers(w, was) && !s.administers(w, &u) {
			if err := s.keepAdmin(w, a, was.ID); err != nil {
				return none, nil, err
			}
		}
		return result{was, &u}, append(dropPasskeys(w.Snapshot, u.ID), mesh.UserPut{User: &u}), nil
	})
	if err != nil {
		return nil, err
	}
	if out.after != out.before {
		s.logFor(a).Info("account of a user changed", "user", out.after.Name, "account", out.after.ProviderID, "was", out.before.ProviderID)
	}
	return out.after, nil
}

// maxAccount leaves room for a long issuer and for the longest subject.
const maxAccount = 1024

func checkAccount(account string) error {
	if err := checkText("providerId", account, maxAccount); err != nil {
		return err
	}
	u, err := url.Parse(account)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") == "" || strings.HasSuffix(account, "/") || strings.TrimSpace(account) != account {
		return refuse(Invalid, "providerId", "%q is not an account: it is the issuer, a slash and the subject, for example https://id.example.com/realms/company/7c1e4b2a", account)
	}
	return nil
}

// escapedAccount returns an account in the form in which Headscale stores it: characters
// that a URL cannot contain are escaped, such as the bar in the subjects of Auth0. It is
// empty if other accounts could have the same form.
func (p Person) escapedAccount() string {
	if p.Subject == "." || p.Subject == ".." || strings.ContainsAny(p.Subject, "/%") || strings.TrimSpace(p.Subject) != p.Subject {
		return ""
	}
	joined, err := url.JoinPath(p.Issuer, p.Subject)
	if err != nil {
		return ""
	}
	return joined
}

// escapedAccount is as for a person whose subject begins at the last slash.
func escapedAccount(account string) string {
	i := strings.LastIndexByte(account, '/')
	return Person{Issuer: account[:i], Subject: account[i+1:]}.escapedAccount()
}

// userOf returns the user of a person who has signed in before, or whom an administrator
// has linked to the account.
func userOf(s *mesh.Snapshot, p Person) (*mesh.User, bool) {
	if u, ok := s.Users.ByProviderID(mesh.ProviderOIDC, p.ID()); ok {
		return u, true
	}
	if id := p.escapedAccount(); id != "" {
		return s.Users.ByProviderID(mesh.ProviderOIDC, id)
	}
	return nil, false
}
