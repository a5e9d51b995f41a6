package bff

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// sessionInfo is the response of /admin/api/session.
type sessionInfo struct {
	Key          keyInfo         `json:"key"`
	Person       string          `json:"person"` // name of the person, if they did not sign in with an API key
	CSRF         string          `json:"csrf"`
	Coordinator  coordinatorInfo `json:"coordinator"`
	Console      consoleInfo     `json:"console"`
	Capabilities []string        `json:"capabilities"` // operations of the API that the console passes on
}

type keyInfo struct {
	ID         string     `json:"id"`     // the 12 characters that identify the key
	Prefix     string     `json:"prefix"` // as in the list of keys
	Role       string     `json:"role"`   // member, read, operator or admin
	Scopes     []string   `json:"scopes"`
	Expiration *time.Time `json:"expiration"`
}

// roleMember is the role of people who may only use what they own.
const roleMember = "member"

type coordinatorInfo struct {
	URL            string `json:"url"` // for people and devices, if the server reports it
	Version        string `json:"version"`
	ProductVersion string `json:"productVersion"`
}

type consoleInfo struct {
	Version string `json:"version"`
}

// session handles /admin/api/session: it tells a page who is signed in, or changes the key of the session.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	v, now := s.visitor(r), s.now()
	held, ok, _ := s.heldSession(r, v, now)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		notAllowed(w, "GET, HEAD, POST")
		return
	case !ok:
		noSession(w)
		return
	case r.Method == http.MethodPost:
		s.changeKey(w, r, held, v, now)
		return
	}
	found := s.checkKey(r.Context(), held, v, requestID(w))
	if errors.Is(found.err, errEnded) {
		s.endSession(w, v, held)
		noSession(w)
		return
	} else if found.err != nil {
		s.unreachable(w, found.err)
		return
	}
	if isAttended(r) {
		s.renew(w, v, held, now)
	}
	s.tellSession(w, r, held, found.caller)
}

func (s *Server) tellSession(w http.ResponseWriter, r *http.Request, held session, caller *apiclient.Caller) {
	known := s.upstream.known(r.Context())
	info := sessionInfo{
		Key: keyInfo{
			ID: keyID(caller.Name), Prefix: caller.Name, Role: caller.Role,
			Scopes: append([]string{}, caller.Scopes...), Expiration: caller.Expiration,
		},
		CSRF:        s.seals.csrfToken(held.ID),
		Coordinator: coordinatorInfo{cmp.Or(known.serverURL, s.config.CoordinatorURL), known.version, known.productVersion},
		Console:     consoleInfo{s.version},
	}
	if held.Person {
		// The server gives a person a new session at each sign-in, so its expiry is nothing to prepare for.
		info.Person, info.Key.ID, info.Key.Expiration = caller.Name, "user:"+caller.Name, nil
	}
	for _, op := range s.operations {
		if caller.Role == roleMember && !op.member {
			continue
		}
		info.Capabilities = append(info.Capabilities, op.id)
	}
	writeJSON(w, http.StatusOK, "application/json", info)
}

// changeKey continues the session with another key, such as a replacement for the current one. It counts as a
// login: it creates a new session and has the same rate limit.
func (s *Server) changeKey(w http.ResponseWriter, r *http.Request, held session, v visitor, now time.Time) {
	if !s.mayChange(r, held) {
		refuse(w)
		return
	}
	if held.Person {
		writeProblem(w, http.StatusConflict, typeRefused, "this session is not that of an API key: sign out first")
		return
	}
	var in struct{ Key string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBody)).Decode(&in); err != nil {
		writeProblem(w, http.StatusBadRequest, typeRefused, `the request must be {"key": "flk_…"}`)
		return
	}
	from := source(held.login())
	if wait := s.throttle.admit(from, now); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
		writeProblem(w, http.StatusTooManyRequests, typeRefused, tooMany(wait))
		return
	}
	next, caller, err := s.begin(r.Context(), strings.TrimSpace(in.Key), v, requestID(w), now)
	switch {
	case errors.Is(err, errEnded):
		s.log.Warn("sign-in rejected", "addr", v.addr.String())
		pause(r.Context(), refusalTime-s.now().Sub(now))
		writeProblem(w, http.StatusUnprocessableEntity, typeRefused, textRefused) // 401 would mean that this session has ended
		return
	case err != nil:
		s.throttle.undo(from)
		s.unreachable(w, err)
		return
	}
	s.throttle.success(from)
	next.Login = held.login()
	if err := s.keepSession(w, v, next, now); err != nil {
		s.log.Error("cannot create session", "err", err)
		writeProblem(w, http.StatusInternalServerError, typeNone, "internal error in the console")
		return
	}
	s.log.Info("session switched to another API key", "key", next.Prefix, "before", held.Prefix, "addr", v.addr.String())
	s.tellSession(w, r, next, caller)
}
