package mesh

import "iter"

// SSHGrant is the answer of an administrator to a checked SSH session. There is
// at most one for each Src, Dst and User: a newer answer takes its id.
type SSHGrant struct {
	ID  SSHGrantID `json:"id"`
	Src NodeID     `json:"src"`
	Dst NodeID     `json:"dst"`
	// User is the account on Dst that the session asks for.
	User     string `json:"user" column:"login"`
	Rejected bool   `json:"rejected,omitempty"`
	// By is who answered, as people see the actor.
	By        string `json:"by,omitempty" column:"granted_by"`
	Until     Time   `json:"until"`
	GrantedAt Time   `json:"grantedAt"`
}

// SSHGrantPut adds or replaces the answer to a checked SSH session.
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

// SSHGrantGone removes an answer to a checked SSH session.
type SSHGrantGone struct {
	ID SSHGrantID `json:"id"`
}

// Kind names the event in the log.
func (SSHGrantGone) Kind() Kind    { return KindSSHGrantGone }
func (e SSHGrantGone) valid() bool { return valid(e.ID) }
func (e SSHGrantGone) apply(d *Draft) {
	keep(d.e, &d.s.sshGrants, &d.s.sshGrantByAsk, e.ID, nil, sshGrantAsk)
}

// sshAsk is what an SSHGrant answers.
type sshAsk struct {
	src, dst NodeID
	user     string
}

func sshGrantAsk(g *SSHGrant) sshAsk { return sshAsk{g.Src, g.Dst, g.User} }

// SSHGrant returns the answer to a checked session from src to dst as user.
func (s *Snapshot) SSHGrant(src, dst NodeID, user string) (*SSHGrant, bool) {
	id, ok := s.sshGrantByAsk.at(sshAsk{src, dst, user})
	if !ok {
		return nil, false
	}
	return found(s.sshGrants.at(int64(id)))
}

// SSHGrants yields all answers to checked sessions in the order of their ids.
func (s *Snapshot) SSHGrants() iter.Seq[*SSHGrant] { return s.sshGrants.all() }
