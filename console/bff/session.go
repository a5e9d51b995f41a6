package bff

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	idleTime     = 12 * time.Hour
	longestTime  = 7 * 24 * time.Hour
	renewEvery   = 10 * time.Minute
	verdictAge   = 5 * time.Second
	maxVerdicts  = 1000
	adminPath    = "/admin/"
	cookieName   = "fairlead_session"
	loginName    = "fairlead_login"
	knownName    = "fairlead_known"
	securePrefix = "__Secure-"
	// endedKeptTime is for how long a browser keeps a session that ended by itself, so
	// that the login page can tell why: over a weekend. It opens nothing any more.
	endedKeptTime = 3 * 24 * time.Hour
	endedMarkTime = time.Hour
	toldMarkTime  = time.Minute
	// knownTime is how long after a sign-in a browser is not slowed down by the
	// failed logins of others in its network.
	knownTime = 90 * 24 * time.Hour
)

// endMark in place of a session says why it ended, until the login page has told
// it, and a little longer for the other tabs.
type endMark string

const (
	revokedMark endMark = "ended"
	expiredMark endMark = "expired" // the key did
	idleMark    endMark = "idle"
	oldMark     endMark = "old"
)

// text is what the login page says of it; nothing of what is no mark.
func (m endMark) text() string {
	switch m {
	case revokedMark:
		return textRevoked
	case expiredMark:
		return textExpired
	case idleMark:
		return textIdle
	case oldMark:
		return textOld
	}
	return ""
}

// session is what the cookie holds.
type session struct {
	ID      string    `json:"id"`
	Login   string    `json:"login,omitempty"` // id of the session with which the person logged in, if the key was changed since
	Key     string    `json:"key"`
	Prefix  string    `json:"prefix"` // the key with its secret masked
	Issued  time.Time `json:"issued"`
	Renewed time.Time `json:"renewed"`
	End     time.Time `json:"end"`
}

// newSession begins one for a key that the service takes. Its id is new, whatever
// the browser sent before.
func newSession(key string, caller *apiclient.Caller, now time.Time) session {
	s := session{ID: rand.Text(), Key: key, Prefix: caller.Name, Issued: now, Renewed: now, End: now.Add(longestTime)}
	if e := caller.Expiration; e != nil && e.Before(s.End) {
		s.End = *e
	}
	return s
}

// login identifies what signing out ends: this session, and the earlier ones whose
// key it replaced.
func (s session) login() string { return cmp.Or(s.Login, s.ID) }

// end is when the session ends if nothing more happens.
func (s session) end() time.Time {
	if idle := s.Renewed.Add(idleTime); idle.Before(s.End) {
		return idle
	}
	return s.End
}

// endedBy is why a session that is over is so.
func (s session) endedBy() endMark {
	switch {
	case s.end().Before(s.End):
		return idleMark
	case s.End.Before(s.Issued.Add(longestTime)):
		return expiredMark
	}
	return oldMark
}

// cookieFor is the name of a cookie. Browsers take one with the prefix only over
// TLS, so none that was planted over plain HTTP counts there.
func cookieFor(name string, secure bool) string {
	if secure {
		return securePrefix + name
	}
	return name
}

func (s *Server) setCookie(w http.ResponseWriter, v visitor, name, text string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieFor(name, v.secure), Value: text, Path: adminPath, MaxAge: int(lifetime.Seconds()),
		HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteLaxMode,
	})
}

func (s *Server) dropCookie(w http.ResponseWriter, v visitor, name string) {
	s.setCookie(w, v, name, "", -time.Second)
}

// keepSession gives a session to the browser.
func (s *Server) keepSession(w http.ResponseWriter, v visitor, held session, now time.Time) error {
	name := cookieFor(cookieName, v.secure)
	text, err := s.seals.seal(name, held)
	if err == nil {
		s.setCookie(w, v, cookieName, text, held.end().Sub(now)+endedKeptTime)
	}
	return err
}

// endSession takes a session whose key is refused from the browser.
func (s *Server) endSession(w http.ResponseWriter, v visitor, held session) {
	s.verdicts.put(held.ID, verdict{err: errEnded})
	s.setCookie(w, v, cookieName, string(revokedMark), endedMarkTime)
}

// heldSession opens the session of a request. Where there was one that has ended,
// it says why.
func (s *Server) heldSession(r *http.Request, v visitor, now time.Time) (held session, ok bool, why endMark) {
	name := cookieFor(cookieName, v.secure)
	cookie, err := r.Cookie(name)
	if err != nil {
		return held, false, ""
	}
	if mark := endMark(cookie.Value); mark.text() != "" {
		return held, false, mark
	}
	if err := s.seals.open(name, cookie.Value, &held); err != nil {
		return session{}, false, ""
	}
	if !now.Before(held.end()) {
		return session{}, false, held.endedBy()
	}
	if s.signOuts.has(held.login()) {
		return session{}, false, ""
	}
	return held, true, ""
}

// isAttended reports whether a page says that somebody used it a moment ago. What
// pages ask of their own accord, again and again, keeps no session alive.
func isAttended(r *http.Request) bool { return r.Header.Get("X-Attended") != "" }

// renew moves the idle end of a session that somebody uses.
func (s *Server) renew(w http.ResponseWriter, v visitor, held session, now time.Time) {
	if now.Sub(held.Renewed) < renewEvery {
		return
	}
	held.Renewed = now
	if err := s.keepSession(w, v, held, now); err != nil {
		s.log.Error("a session cannot be renewed", "err", err)
	}
}

// verdict is what the service says of the key of a session.
type verdict struct {
	caller *apiclient.Caller
	err    error // errEnded, or why nobody knows
	at     time.Time
}

// judge asks the service, or remembers for a moment what it said.
func (s *Server) judge(ctx context.Context, held session, v visitor, requestID string) verdict {
	if known, ok := s.verdicts.get(held.ID); ok {
		return known
	}
	caller, err := s.upstream.whoami(ctx, held.Key, forwarded(v, requestID))
	found := verdict{caller: caller, err: err}
	if err == nil || errors.Is(err, errEnded) {
		s.verdicts.put(held.ID, found)
	}
	return found
}

// verdicts remembers those of the last moment, by session.
type verdicts struct {
	mu    sync.Mutex
	known map[string]verdict // guarded by mu; at most maxVerdicts
}

func (v *verdicts) get(id string) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.known[id]
	return found, ok && time.Since(found.at) < verdictAge
}

func (v *verdicts) put(id string, found verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxVerdicts {
		v.known = map[string]verdict{}
	}
	found.at = time.Now()
	v.known[id] = found
}

// keyID is the part of a masked key that names it.
func keyID(prefix string) string {
	return strings.TrimSuffix(strings.TrimPrefix(prefix, "flk_"), "_***")
}
