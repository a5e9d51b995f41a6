package wire

import (
	"net/http"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
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

// signInAgainClock is how much the clock of a provider may be behind.
const signInAgainClock = time.Minute

// approvesSSH reports whether the person signs in to approve an SSH session. They must sign in again then, even if they
// are signed in at the provider: whoever uses an unattended computer must not be able to approve sessions from it.
func (f signInFlow) approvesSSH() bool { return f.Session != nil && f.Session.SSH != "" }

// signedInAgain reports whether the provider let the person sign in after the flow began. What the URL asked for is not
// enough, because whoever uses the browser can change it.
func (f signInFlow) signedInAgain(who oidc.Identity) bool {
	return !who.AuthTime.IsZero() && !who.AuthTime.Before(f.At.Time().Add(-signInAgainClock))
}

// notSignedInAgain refuses a person who has not signed in again.
func (s *signIn) notSignedInAgain(w http.ResponseWriter, r *http.Request, p *oidc.Provider, flow signInFlow, who oidc.Identity) {
	reason := "it did not say when you signed in (auth_time)"
	if !who.AuthTime.IsZero() {
		reason = "you signed in there before you opened this link"
	}
	s.clearCookie(w, flow.State)
	s.logFailure(r, p, "the identity provider did not ask the person to sign in again: "+reason)
	s.fail(w, http.StatusForbidden, failure{
		provider: p.Name(), state: "sshrefused",
		text: "Your identity provider did not ask you to sign in again: " + reason +
			". Open the link from the terminal again. If this does not help, an administrator can approve the session with: fairlead ssh approve " + flow.Session.SSH,
	})
}

// mayCommit reports whether the user of a person who has not confirmed yet may be committed. A person who only tries to
// approve an SSH session, and may not do it, does not become a user.
func (s *signIn) mayCommit(c signInConfirm) bool {
	if c.Session == nil || c.Session.SSH == "" {
		return true
	}
	user, err := s.config.Logins.Preview(c.Person)
	if err != nil { // the next page says why
		return false
	}
	if _, known := s.config.Ledger.World().Users.Get(user.ID); known {
		return true
	}
	_, err = s.config.SSH.ForPerson(c.Session.SSH, user)
	return err == nil
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
