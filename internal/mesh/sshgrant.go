package mesh

// SSHGrant is an administrator's decision on an SSH session that needs approval. There is
// at most one for each Src, Dst and User: a newer decision keeps its id.
type SSHGrant struct {
	ID  SSHGrantID `json:"id"`
	Src NodeID     `json:"src"`
	Dst NodeID     `json:"dst"`
	// User is the account on Dst that the session uses.
	User     string `json:"user" column:"login"`
	Rejected bool   `json:"rejected,omitempty"`
	// By is the actor who decided, in the form shown to people.
	By        string `json:"by,omitempty" column:"granted_by"`
	Until     Time   `json:"until"`
	GrantedAt Time   `json:"grantedAt"`
}

// SSHGrantPut adds or replaces the decision on an SSH session.
type SSHGrantPut struct {
	Grant *SSHGrant `json:"grant"`
}

// Kind names the event in the log.
func (SSHGrantPut) Kind() Kind          { return KindSSHGrantPut }
func (e SSHGrantPut) valid() bool       { return e.Grant != nil && valid(e.Grant.ID) }
func (e SSHGrantPut) count(c *Counters) { c.SSHGrant = max(c.SSHGrant, e.Grant.ID) }
func (e SSHGrantPut) apply(d *Draft) {
	keep(d.e, &d.s.SSHGrants.Table, &d.s.SSHGrants.byKey, e.Grant.ID, e.Grant, sshGrantKey)
}

// SSHGrantGone removes the decision on an SSH session.
type SSHGrantGone struct {
	ID SSHGrantID `json:"id"`
}

// Kind names the event in the log.
func (SSHGrantGone) Kind() Kind    { return KindSSHGrantGone }
func (e SSHGrantGone) valid() bool { return valid(e.ID) }
func (e SSHGrantGone) apply(d *Draft) {
	keep(d.e, &d.s.SSHGrants.Table, &d.s.SSHGrants.byKey, e.ID, nil, sshGrantKey)
}

// sshKey identifies the sessions that an SSHGrant applies to.
type sshKey struct {
	src, dst NodeID
	user     string
}

func sshGrantKey(g *SSHGrant) sshKey { return sshKey{g.Src, g.Dst, g.User} }

// SSHGrants holds all decisions on SSH sessions.
type SSHGrants struct {
	Table[SSHGrantID, SSHGrant]
	byKey index[sshKey, SSHGrantID]
}

// For returns the decision on sessions from src to dst as user.
func (s *SSHGrants) For(src, dst NodeID, user string) (*SSHGrant, bool) {
	return s.lookup(s.byKey.at(sshKey{src, dst, user}))
}
