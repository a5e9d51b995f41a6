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
	keyCheckAge  = 5 * time.Second
	maxKeyChecks = 1000
	adminPath    = "/admin/"
	cookieName   = "fairlead_session"
	loginName    = "fairlead_login"
	knownName    = "fairlead_known"
	securePrefix = "__Secure-"
	// endedKeptTime is how long a browser keeps the cookie of a session that has expired, so that the login
	// page can say why, for example after a weekend. The cookie no longer gives access.
	endedKeptTime = 3 * 24 * time.Hour
	endedMarkTime = time.Hour
	toldMarkTime  = time.Minute
	// knownTime is how long after a sign-in a browser is not slowed down by the
	// failed logins of others in its network.
	knownTime = 90 * 24 * time.Hour
)

// endMark replaces the session in the cookie and says why the session ended. It stays until the login page
// has shown the reason, and a little longer for other tabs.
type endMark string

const (
	revokedMark endMark = "ended"
	expiredMark endMark = "expired" // the key has expired
	idleMark    endMark = "idle"
	oldMark     endMark = "old"
	// The same for sessions of people who signed in with a provider.
	personRevokedMark endMark = "person-ended"
	personExpiredMark endMark = "person-expired"
)

// text returns the message for a mark on the login page, or "" if the text is not a mark.
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
	case personRevokedMark:
		return textPersonRevoked
	case personExpiredMark:
		return textPersonExpired
	}
	return ""
}

// session is the content of the session cookie.
type session struct {
	ID      string    `json:"id"`
	Login   string    `json:"login,omitempty"` // id of the session with which the person logged in, if the key was changed since
	Key     string    `json:"key"`
	Person  bool      `json:"person,omitempty"` // the key is the session token of a person
	Prefix  string    `json:"prefix"`           // the key with its secret masked, or the name of the person
	Issued  time.Time `json:"issued"`
	Renewed time.Time `json:"renewed"`
	End     time.Time `json:"end"`
}

// newSession starts a session for a key that the server accepts. Its id is always new, whatever the browser
// sent before.
func newSession(key string, caller *apiclient.Caller, now time.Time) session {
	s := session{ID: rand.Text(), Key: key, Prefix: caller.Name, Issued: now, Renewed: now, End: now.Add(longestTime)}
	if e := caller.Expiration; e != nil && e.Before(s.End) {
		s.End = *e
	}
	return s
}

// login identifies what signing out ends: this session and earlier sessions of the same login with other
// keys.
func (s session) login() string { return cmp.Or(s.Login, s.ID) }

// end returns when the session ends if it is not renewed.
func (s session) end() time.Time {
	if idle := s.Renewed.Add(idleTime); idle.Before(s.End) {
		return idle
	}
	return s.End
}

// endedBy returns why a session has ended.
func (s session) endedBy() endMark {
	switch {
	case s.end().Before(s.End):
		return idleMark
	case s.End.Before(s.Issued.Add(longestTime)) && s.Person:
		return personExpiredMark
	case s.End.Before(s.Issued.Add(longestTime)):
		return expiredMark
	}
	return oldMark
}

// revokedBy returns why a session has ended whose key the server refuses.
func (s session) revokedBy() endMark {
	if s.Person {
		return personRevokedMark
	}
	return revokedMark
}

// kind says what the log calls the owner of the session.
func (s session) kind() string {
	if s.Person {
		return "user"
	}
	return "key"
}

// cookieFor returns the full name of a cookie. Browsers accept the secure prefix only over TLS, so a cookie
// that was planted over plain HTTP is ignored there. The prefix __Host- would also keep hosts with the same
// parent domain from planting a cookie, but demands the path /: browsers would then send the session to
// everything else on this host. Such a host can only plant a session of its own, and the page shows whose
// session it is.
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

// keepSession stores a session in the browser's cookie.
func (s *Server) keepSession(w http.ResponseWriter, v visitor, held session, now time.Time) error {
	name := cookieFor(cookieName, v.secure)
	text, err := s.seals.seal(name, held)
	if err == nil {
		s.setCookie(w, v, cookieName, text, held.end().Sub(now)+endedKeptTime)
	}
	return err
}

// endSession removes a session from the browser after the server has refused its key.
func (s *Server) endSession(w http.ResponseWriter, v visitor, held session) {
	s.keyChecks.put(held.ID, keyCheck{err: errEnded})
	s.setCookie(w, v, cookieName, string(held.revokedBy()), endedMarkTime)
}

// heldSession opens the session of a request. If the session has ended, it returns the reason.
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

// requireSession returns the session of a request, or responds that there is none.
func (s *Server) requireSession(w http.ResponseWriter, r *http.Request, v visitor, now time.Time) (held session, ok bool) {
	held, ok, _ = s.heldSession(r, v, now)
	if !ok {
		noSession(w)
	}
	return held, ok
}

// isAttended reports whether a person has just used the page, according to the request. Requests that pages
// repeat by themselves do not keep a session alive.
func isAttended(r *http.Request) bool { return r.Header.Get("X-Attended") != "" }

// renew extends the idle timeout of a session that is in use.
func (s *Server) renew(w http.ResponseWriter, v visitor, held session, now time.Time) {
	if now.Sub(held.Renewed) < renewEvery {
		return
	}
	held.Renewed = now
	if err := s.keepSession(w, v, held, now); err != nil {
		s.log.Error("cannot renew session", "err", err)
	}
}

// keyCheck is the result of checking the key of a session with the server.
type keyCheck struct {
	caller *apiclient.Caller
	err    error // errEnded, or why the server could not be asked
	at     time.Time
}

// checkKey asks the server about the session's key, with a cache of a few seconds.
func (s *Server) checkKey(ctx context.Context, held session, v visitor, requestID string) keyCheck {
	if known, ok := s.keyChecks.get(held.ID); ok {
		return known
	}
	caller, err := s.upstream.whoami(ctx, held.Key, forwarded(v, requestID))
	found := keyCheck{caller: caller, err: err}
	if err == nil || errors.Is(err, errEnded) {
		s.keyChecks.put(held.ID, found)
	}
	return found
}

// keyChecks caches key checks by session, for keyCheckAge.
type keyChecks struct {
	mu    sync.Mutex
	known map[string]keyCheck // guarded by mu; at most maxKeyChecks
}

func (v *keyChecks) get(id string) (keyCheck, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.known[id]
	return found, ok && time.Since(found.at) < keyCheckAge
}

func (v *keyChecks) put(id string, found keyCheck) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxKeyChecks {
		v.known = map[string]keyCheck{}
	}
	found.at = time.Now()
	v.known[id] = found
}

// keyID returns the identifying part of a masked key.
func keyID(prefix string) string {
	return strings.TrimSuffix(strings.TrimPrefix(prefix, "flk_"), "_***")
}
