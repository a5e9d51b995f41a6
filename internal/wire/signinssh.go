package wire

import (
	"net/http"
	"net/url"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// sshPath is followed by the code of an SSH session that waits for approval.
const sshPath = signInPath + "ssh/"

// startSSH lets a person sign in to approve an SSH session. Whether the code exists is shown only to somebody who may
// approve it.
func (s *signIn) startSSH(w http.ResponseWriter, r *http.Request) {
	code := identity.FoldLoginCode(r.PathValue("code"))
	if code == "" {
		s.fail(w, http.StatusBadRequest, failure{state: "request", text: "the link is incomplete. Copy the whole link from the terminal"})
		return
	}
	s.signInTo(w, r, &sessionRequest{SSH: code})
}

// withPassword makes a provider ask for the password, or whatever it uses, even if the person is signed in there:
// whoever uses an unattended computer must not be able to approve sessions from it.
func withPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	q.Set("prompt", "login")
	u.RawQuery = q.Encode()
	return u.String()
}

// confirmSSHPage asks the person whether to approve the session.
func (s *signIn) confirmSSHPage(w http.ResponseWriter, r *http.Request, c signInConfirm, user *mesh.User) {
	q, err := s.config.SSH.ForPerson(c.Session.SSH, user)
	if err != nil {
		s.refused(w, r, c, err)
		return
	}
	name := func(id mesh.NodeID) string {
		if n, ok := s.config.Ledger.World().Nodes.Get(id); ok {
			return n.Name
		}
		return ""
	}
	s.pages.write(w, http.StatusOK, "signin", page{
		State: "ssh", CSRF: c.CSRF, Action: signInPath + "confirm/" + c.ID, User: q.User, Account: c.Person.Label(),
		Host: name(q.Src), Return: name(q.Dst), Code: c.Session.SSH,
	})
}

// approveSSH approves the session.
func (s *signIn) approveSSH(w http.ResponseWriter, r *http.Request, c signInConfirm) {
	a := s.actor(r)
	user, err := s.config.Logins.Preview(c.Person)
	if err == nil {
		_, err = s.config.SSH.ForPerson(c.Session.SSH, user) // a person who may not do it does not become a user
	}
	if err == nil {
		user, err = s.config.Logins.SaveUser(r.Context(), a, c.Person)
	}
	if err == nil {
		err = s.config.SSH.ApproveAs(r.Context(), a, c.Session.SSH, user.ID, c.ID)
	}
	s.clearCookie(w, c.ID)
	if err != nil {
		s.refused(w, r, c, err)
		return
	}
	s.pages.write(w, http.StatusOK, "signin", page{State: "sshapproved"})
}
