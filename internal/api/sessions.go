package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// currentSession stands for the session that a request uses.
const currentSession = "current"

// sessions handles the operations on sessions.
type sessions struct {
	*core
	control      *control.Sessions
	observations *control.Observations
	signIn       openapi.SignIn
}

// ListSessions implements GET /api/v1/session.
func (s *sessions) ListSessions(w http.ResponseWriter, r *http.Request, p openapi.ListSessionsParams) {
	var of mesh.UserID
	if p.User != nil {
		u, _, err := search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.User, error) { return control.FindUser(snap, *p.User) })
		if err != nil {
			s.fail(w, r, err)
			return
		}
		of = u.ID
	}
	s.list(w, r, p.Limit, p.Cursor, func(v *mesh.Session) bool { return of == 0 || v.User == of })
}

// ListMySessions implements GET /api/v1/my/session.
func (s *sessions) ListMySessions(w http.ResponseWriter, r *http.Request, p openapi.ListMySessionsParams) {
	of := owner(r)
	s.list(w, r, p.Limit, p.Cursor, func(v *mesh.Session) bool { return of != 0 && v.User == of })
}

func (s *sessions) list(w http.ResponseWriter, r *http.Request, limit *int, cursor *string, want func(*mesh.Session) bool) {
	part, err := pageOf(limit, cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap, at := s.ledger.World().Snapshot, s.ledger.Now()
	lister[*mesh.Session, mesh.SessionID]{
		name: "sessions", id: func(v *mesh.Session) mesh.SessionID { return v.ID },
		encode: func(v *mesh.Session) []byte {
			newest := *v
			newest.LastUse = s.observations.LastSessionUse(v)
			return encoded(sessionShape(snap, &newest, session(r)))
		},
	}.reply(w, snap, part, where(snap.Sessions.All(), func(v *mesh.Session) bool { return !v.Expiry.Reached(at) && want(v) }))
}

// RevokeSession implements DELETE /api/v1/session/{id}.
func (s *sessions) RevokeSession(w http.ResponseWriter, r *http.Request, id string) {
	s.done(w, r, s.control.Revoke(r.Context(), actor(r), sessionID(id), 0))
}

// RevokeMySession implements DELETE /api/v1/my/session/{id}.
func (s *sessions) RevokeMySession(w http.ResponseWriter, r *http.Request, id string) {
	of := sessionID(id)
	if id == currentSession {
		of = session(r)
	}
	if owner(r) == 0 {
		of = 0
	}
	s.done(w, r, s.control.Revoke(r.Context(), actor(r), of, owner(r)))
}

// owner returns the person who makes a request with a session, or zero. An API key has no sessions, even if it
// belongs to a person: a program that has it need not see where the person is signed in, or sign the person out.
func owner(r *http.Request) mesh.UserID {
	if session(r) == 0 {
		return 0
	}
	return actor(r).User
}

// sessionID returns the id in a path, or zero, which no session has.
func sessionID(text string) mesh.SessionID {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return mesh.SessionID(id)
}

// CreateSession implements POST /api/v1/session.
func (s *sessions) CreateSession(w http.ResponseWriter, r *http.Request) {
	var in openapi.SessionExchange
	err := decode(w, r, &in)
	var v *mesh.Session
	var token string
	if err == nil {
		v, token, err = s.control.Exchange(r.Context(), actor(r), in.Code, in.Verifier, in.ReturnURL)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.SessionResult{Token: token, Session: sessionShape(snap, v, v.ID)})
}

// ShowSignIn implements GET /api/v1/signin.
func (s *sessions) ShowSignIn(w http.ResponseWriter, _ *http.Request) {
	snap, out := s.ledger.World().Snapshot, s.signIn
	if snap.Passkeys.Len() > 0 {
		out.Providers = append(slices.Clip(out.Providers), openapi.SignInProvider{ID: "passkey", Name: "a passkey"})
	}
	reply(w, snap, out)
}

// pollSeconds is how long a program waits between two requests for a session.
const pollSeconds = 3

// StartDeviceSignIn implements POST /api/v1/session/device.
func (s *sessions) StartDeviceSignIn(w http.ResponseWriter, r *http.Request) {
	var in openapi.DeviceSignInRequest
	err := decode(w, r, &in)
	var token string
	switch {
	case err != nil:
	case len(s.signIn.Providers) == 0 && s.ledger.World().Passkeys.Len() == 0:
		err = &control.Refusal{Reason: control.Conflict, Text: "nobody can sign in to this server: it has no identity provider"}
	default:
		token, err = s.control.StartDevice(actor(r).Addr, in.Challenge, or(in.Description))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.DeviceSignIn{
		DeviceCode: token, UserCode: identity.Code(token), URL: s.deviceURL(token), ExpiresIn: int(control.DeviceSignInLifetime.Seconds()), Interval: pollSeconds,
	})
}

// deviceURL returns where a person signs in on another device.
func (s *sessions) deviceURL(token string) string {
	return strings.TrimSuffix(s.signIn.URL, "session") + "device/" + token
}

// PollDeviceSignIn implements POST /api/v1/session/device/token.
func (s *sessions) PollDeviceSignIn(w http.ResponseWriter, r *http.Request) {
	var in openapi.DeviceSignInPoll
	err := decode(w, r, &in)
	var v *mesh.Session
	var token string
	if err == nil {
		v, token, err = s.control.PollDevice(r.Context(), actor(r), in.DeviceCode, in.Verifier)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap, out := s.ledger.World().Snapshot, openapi.DeviceSignInResult{Pending: v == nil, Token: token}
	if v != nil {
		out.Session = new(sessionShape(snap, v, v.ID))
	}
	reply(w, snap, out)
}
