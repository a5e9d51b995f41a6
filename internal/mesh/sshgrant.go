package mesh

import "iter"

// SSHGrant is an administrator's answer to an SSH session that needs approval. There
// is at most one for each Src, Dst and User: a newer answer takes over its id.
type SSHGrant struct {
	ID  SSHGrantID `json:"id"`
	Src NodeID     `json:"src"`
	Dst NodeID     `json:"dst"`
	// User is the account on Dst that the session asks for.
	User     string `json:"user" column:"login"`
	Rejected bool   `json:"rejected,omitempty"`
	// By is the actor who answered, in the form shown to people.
	By        string `json:"by,omitempty" column:"granted_by"`
	Until     Time   `json:"until"`
	GrantedAt Time   `json:"grantedAt"`
}

// SSHGrantPut adds or replaces the answer to an SSH session.
type SSHGrantPut struct {
	Grant *SSHGrant `json:"grant"`
}

// Kind names the event in the log.
func (SSHGrantPut) Kind() Kind          { return KindSSHGrantPut }
func (e SSHGrantPut) valid() bool       { return e.Grant != nil && valid(e.Grant.ID) }
func (e SSHGrantPut) count(c *Counters) { c.SSHGrant = max(c.SSHGrant, e.Grant.ID) }
func (e SSHGrantPut) apply(d *Draft) {
	keep(d.e, &d.s.sshGrants, &d.s.sshGrantByAsk, e.Grant.ID, e.Grant, sshGrantAsk)
}

// SSHGrantGone removes the answer to an SSH session.
type SSHGrantGone struct {
	ID SSHGrantID `json:"id"`
}

// Kind names the event in the log.
func (SSHGrantGone) Kind() Kind    { return KindSSHGrantGone }
func (e SSHGrantGone) valid() bool { return valid(e.ID) }
func (e SSHGrantGone) apply(d *Draft) {
	keep(d.e, &d.s.sshGrants, &d.s.sshGrantByAsk, e.ID, nil, sshGrantAsk)
}

// sshAsk identifies the sessions that an SSHGrant answers.
type sshAsk struct {
	src, dst NodeID
	user     string
}

func sshGrantAsk(g *SSHGrant) sshAsk { return sshAsk{g.Src, g.Dst, g.User} }

// SSHGrant returns the answer to sessions from src to dst as user.
func (s *Snapshot) SSHGrant(src, dst NodeID, user string) (*SSHGrant, bool) {
	id, ok := s.sshGrantByAsk.at(sshAsk{src, dst, user})
	if !ok {
		return nil, false
	}
	return found(s.sshGrants.at(int64(id)))
}

// SSHGrants yields all answers to SSH sessions, sorted by id.
func (s *Snapshot) SSHGrants() iter.Seq[*SSHGrant] { return s.sshGrants.all() }
