package mesh

// SessionClient is the kind of program that a session was created for.
type SessionClient string

// The kinds of program that people sign in to.
const (
	SessionConsole SessionClient = "console"
	SessionCLI     SessionClient = "cli"
)

// Session gives a person access to the API after signing in. What it allows depends on the
// user at the time of each request. Prefix is its public part.
type Session struct {
	ID     SessionID     `json:"id"`
	Prefix string        `json:"prefix"`
	Hash   Secret        `json:"hash"`
	User   UserID        `json:"user" column:"user_id"`
	Client SessionClient `json:"client"`
	// Description tells sessions of the same person apart, for example by the host name of
	// the computer.
	Description string `json:"description,omitempty"`
	// ProviderSession identifies the session at the identity provider with which the person
	// signed in, hashed, so that the provider can end this session. It is empty if the
	// provider does not say which one it was.
	ProviderSession string `json:"providerSession,omitempty"`
	Expiry          Time   `json:"expiry"`
	CreatedAt       Time   `json:"createdAt"`

	// LastUse has events of its own. SessionPut does not change it.
	LastUse KeyUse `json:"-"`
}

// SessionPut adds or replaces a session, except its LastUse.
type SessionPut struct {
	Session *Session `json:"session"`
}

// Kind names the event in the log.
func (SessionPut) Kind() Kind          { return KindSessionPut }
func (e SessionPut) valid() bool       { return e.Session != nil && valid(e.Session.ID) }
func (e SessionPut) count(c *Counters) { c.Session = max(c.Session, e.Session.ID) }
func (e SessionPut) apply(d *Draft) {
	s := *e.Session
	s.LastUse = KeyUse{}
	if old, ok := d.s.Sessions.Get(s.ID); ok {
		s.LastUse = old.LastUse
	}
	keep(d.e, &d.s.Sessions.Table, &d.s.Sessions.byPrefix, s.ID, &s, sessionPrefix)
}

// SessionGone removes a session that was ended or has expired.
type SessionGone struct {
	ID SessionID `json:"id"`
}

// Kind names the event in the log.
func (SessionGone) Kind() Kind    { return KindSessionGone }
func (e SessionGone) valid() bool { return valid(e.ID) }
func (e SessionGone) apply(d *Draft) {
	keep(d.e, &d.s.Sessions.Table, &d.s.Sessions.byPrefix, e.ID, nil, sessionPrefix)
}

// SessionUsed records a use of a session. Not every use becomes an event.
type SessionUsed struct {
	ID  SessionID `json:"id"`
	Use KeyUse    `json:"use"`
}

// Kind names the event in the log.
func (SessionUsed) Kind() Kind    { return KindSessionUsed }
func (e SessionUsed) valid() bool { return valid(e.ID) }
func (e SessionUsed) apply(d *Draft) {
	change(d.e, &d.s.Sessions.Table, e.ID, func(s *Session) { s.LastUse = e.Use })
}

func sessionPrefix(s *Session) string { return s.Prefix }

// Sessions holds all sessions of a snapshot.
type Sessions struct {
	Table[SessionID, Session]
	byPrefix index[string, SessionID]
}

// ByPrefix finds a session by its public part.
func (s *Sessions) ByPrefix(prefix string) (*Session, bool) {
	return s.lookup(s.byPrefix.at(prefix))
}
