package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/stream"
)

const (
	// maxBody is fifty times the size of what clients send.
	maxBody = 128 << 10
	// newestClient limits the protocol version, because it is sent to peers, and some decode it into 32 bits.
	newestClient = 1 << 15
	// oldestClient is the protocol version of v1.74. Older clients expect fields that are no longer sent.
	oldestClient = 106
)

// MachineRoutes returns the handlers for requests inside Noise, by pattern.
func (s *Server) MachineRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /machine/register":                         s.register,
		"POST /machine/map":                              s.netmap,
		"GET " + netmap.SSHActionPath + "{src}/to/{dst}": s.sshAction,
		"GET " + pingPath + "{token}":                    s.answered,
		"POST /machine/set-dns": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this server does not issue certificates", http.StatusNotImplemented)
		},
		"POST /machine/update-health": s.updateHealth,
		"POST /machine/audit-log":     func(http.ResponseWriter, *http.Request) {},
		"POST /machine/feature/query": func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, tailcfg.QueryFeatureResponse{Complete: true})
		},
	}
}

// machineHandler handles requests inside Noise.
func (s *Server) machineHandler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range s.MachineRoutes() {
		mux.HandleFunc(pattern, handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.panicked(r)
		if s.mustRefuse(r.Context()) {
			refuseClosed(w)
			return
		}
		if len(s.config.Ledger.World().Nodes.ByMachine(peerOf(r).machine)) == 0 {
			s.serveStranger(w, r, mux)
			return
		}
		// The first message of a handshake can be a replay of another client's; a request cannot.
		guard.Prove(r.Context())
		s.prove(peerOf(r))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

const pingPath = "/machine/ping/"

// PingURL returns the URL that a node is asked to request, which passes a token to Answered. It uses the host
// name by which the node knows the server, because the node would open a new connection for any other name.
func PingURL(serverURL, token string) string {
	return "https://" + netmap.HomeOf(serverURL) + pingPath + token
}

func (s *Server) answered(w http.ResponseWriter, r *http.Request) {
	if s.config.Answered != nil {
		s.config.Answered(r.PathValue("token"), peerOf(r).machine)
	}
	w.WriteHeader(http.StatusNoContent)
}

// panicked recovers from a panic, logs it and aborts only the request that caused it.
func (s *Server) panicked(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		s.config.Log.Error("client request panicked", "panic", p, "path", r.URL.Path, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// registerRequest is the part of tailcfg.RegisterRequest that is used. The host description is kept as it was
// sent.
type registerRequest struct {
	Version    int
	NodeKey    key.NodePublic
	OldNodeKey key.NodePublic
	Auth       *struct{ AuthKey string }
	Expiry     time.Time
	Followup   string
	Hostinfo   json.RawMessage
	Ephemeral  bool
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var in registerRequest
	if !decode(w, r, &in) {
		return
	}
	if in.Version < oldestClient {
		writeJSON(w, tailcfg.RegisterResponse{Error: rejected + tooOld})
		return
	}
	p := peerOf(r)
	answer := http.NewResponseController(w)
	if in.Followup != "" { // it waits for approval by a person
		_ = answer.SetWriteDeadline(time.Time{})
		defer func() { _ = answer.SetWriteDeadline(time.Now().Add(s.config.RequestTimeout)) }()
	}
	out, err := s.config.Joins.Join(r.Context(), mesh.Actor{Addr: p.addr, RequestID: rand.Text()[:12]}, in.joining(p))
	var refusal *control.Refusal
	switch {
	case errors.As(err, &refusal):
		writeJSON(w, tailcfg.RegisterResponse{Error: rejection(refusal)})
	case errors.Is(err, mesh.ErrNoAddress):
		s.config.Log.Error("node registration failed", "machine", p.machine.ShortString(), "error", err)
		writeJSON(w, tailcfg.RegisterResponse{Error: rejected + err.Error()})
	case err != nil:
		s.fail(w, r, err)
	default:
		writeJSON(w, registered(out))
	}
}

func (in registerRequest) joining(p peer) control.Joining {
	host := parseHost(in.Hostinfo)
	j := control.Joining{
		Proven: true, MachineKey: p.machine, NodeKey: in.NodeKey, OldNodeKey: in.OldNodeKey, Followup: in.Followup, Expiry: mesh.TimeOf(in.Expiry),
		Ephemeral: in.Ephemeral, Tags: host.tags, CapVersion: min(in.Version, newestClient), Host: host.Host,
	}
	if in.Auth != nil {
		j.PreAuthKey = in.Auth.AuthKey
	}
	return j
}

// Messages that the client shows to people who try to join.
const (
	rejected = "Node registration rejected: "
	badKey   = "Authentication failed: invalid key"
	tooOld   = "this client is too old for the server; install version 1.74 or newer"
)

// rejection returns a message that the client shows. With a status other than 200, the client would show no
// message and keep people waiting.
func rejection(r *control.Refusal) string {
	if r.Reason == control.BadKey {
		return fmt.Sprintf("%s%s (%s)", rejected, badKey, r.Text)
	}
	return rejected + r.Text
}

func registered(j control.Joined) tailcfg.RegisterResponse {
	out := tailcfg.RegisterResponse{AuthURL: j.Link, NodeKeyExpired: j.KeyExpired}
	if j.Rejected != "" {
		out.Error = rejected + j.Rejected
	}
	if j.Node == nil {
		return out
	}
	out.MachineAuthorized = !j.Node.NeedsApproval
	id, login := int64(mesh.TaggedDevices), tailcfg.Login{LoginName: control.TaggedDevices, DisplayName: control.TaggedDevices}
	if u := j.User; u != nil {
		id, login = int64(u.ID), tailcfg.Login{Provider: u.Provider, LoginName: u.Name, DisplayName: u.DisplayName, ProfilePicURL: u.ProfilePicURL}
		if login.DisplayName == "" {
			login.DisplayName = u.Name
		}
	}
	login.ID = tailcfg.LoginID(id)
	out.Login = login
	out.User = tailcfg.User{ID: tailcfg.UserID(id), DisplayName: login.DisplayName, ProfilePicURL: login.ProfilePicURL}
	return out
}

// mapRequest is the part of tailcfg.MapRequest that is used.
type mapRequest struct {
	Version    int
	Compress   string
	NodeKey    key.NodePublic
	DiscoKey   key.DiscoPublic
	Stream     bool
	OmitPeers  bool
	Hostinfo   json.RawMessage
	Endpoints  []netip.AddrPort
	DebugFlags []string
}

// netmap handles map requests: those that only report the state of the node, and those that request the map,
// once or as a stream.
func (s *Server) netmap(w http.ResponseWriter, r *http.Request) {
	var in mapRequest
	if !decode(w, r, &in) {
		return
	}
	if in.Version < oldestClient {
		http.Error(w, tooOld, http.StatusBadRequest)
		return
	}
	if !in.Stream && in.OmitPeers {
		s.report(w, r, in)
		return
	}
	p := peerOf(r)
	n, err := s.config.Clients.Find(r.Context(), p.machine, in.NodeKey)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	send := s.config.Streams.Once
	if in.Stream {
		send = s.config.Streams.Serve
		// Every client sends its current measurements when it reconnects, to any replica. The rest of what it
		// sends here may be outdated.
		measured := measuredIn(netInfoOf(in.Hostinfo))
		measured.Flags = in.DebugFlags
		if len(s.config.Noise.All()) > 1 {
			measured.NoiseKey = p.noise
		}
		s.config.Observations.Observe(n.ID, measured)
	}
	err = send(r.Context(), w, stream.Request{Node: n.ID, NodeKey: in.NodeKey, Compress: in.Compress == "zstd"})
	switch {
	case errors.Is(err, stream.ErrGone):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, stream.ErrBusy):
		tryLater(w, http.StatusTooManyRequests, err.Error())
	case errors.Is(err, stream.ErrBroken), r.Context().Err() != nil:
		s.config.Log.Debug("map stream ended", "node", n.ID, "error", err)
	case err != nil:
		s.config.Log.Error("cannot send map", "node", n.ID, "error", err)
		http.Error(w, "internal error; see the server log", http.StatusInternalServerError)
	}
}

func (s *Server) report(w http.ResponseWriter, r *http.Request, in mapRequest) {
	p := peerOf(r)
	report, latency := in.report(p)
	if err := s.config.Clients.Report(r.Context(), mesh.Actor{Addr: p.addr}, report); err != nil {
		s.fail(w, r, err)
		return
	}
	if latency > 0 {
		s.latency.observe(in.NodeKey, latency)
	}
	w.WriteHeader(http.StatusOK) // no client reads the body
}

// report converts the request. It also returns the latency to the home relay in seconds, or zero.
func (in mapRequest) report(p peer) (control.Report, float64) {
	report := control.Report{
		MachineKey: p.machine, NodeKey: in.NodeKey, CapVersion: min(in.Version, newestClient), Endpoints: in.Endpoints, DiscoKey: in.DiscoKey,
	}
	report.Measured.Flags = in.DebugFlags
	if len(in.Hostinfo) == 0 || string(in.Hostinfo) == "null" {
		return report, 0
	}
	host := parseHost(in.Hostinfo)
	report.Host, report.HomeRelay = &host.Host, host.homeRelay
	report.Measured.NAT, report.Measured.Latencies = host.measured.NAT, host.measured.Latencies
	return report, host.latency
}

// updateHealth stores the health warnings that clients up to v1.88 send. Newer clients report only flags.
func (s *Server) updateHealth(w http.ResponseWriter, r *http.Request) {
	var in tailcfg.HealthChangeRequest
	if !decode(w, r, &in) {
		return
	}
	if err := s.config.Clients.SetWarning(r.Context(), peerOf(r).machine, in.NodeKey, in.Subsys, in.Error); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// decode reads the body of a request. If it fails, it sends an error response and returns false.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		decodeFailed(w, err)
		return false
	}
	return true
}

func decodeFailed(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "invalid request", http.StatusBadRequest)
}

// fail responds to errors for which the protocol has no field.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := peerOf(r)
	var refusal *control.Refusal
	var tooFast *control.TooFast
	switch {
	case errors.As(err, &tooFast): // newer clients honour Retry-After, older ones retry by themselves
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(tooFast.After.Seconds()))))
		http.Error(w, tooFast.Error(), http.StatusTooManyRequests)
	case errors.As(err, &refusal) && refusal.Reason == control.NotFound:
		http.Error(w, refusal.Text, http.StatusNotFound)
	case errors.As(err, &refusal):
		if s.refusals.Admit(p.addr) {
			s.config.Log.Warn("forbidden", "addr", p.addr, "machine", p.machine.ShortString(), "path", r.URL.Path, "reason", refusal.Text)
		}
		http.Error(w, refusal.Text, http.StatusForbidden)
	case r.Context().Err() != nil || errors.Is(err, context.Canceled): // the client has disconnected
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrUnknownOutcome), errors.Is(err, ledger.ErrStopped), errors.Is(err, ledger.ErrTooOld):
		tryLater(w, http.StatusServiceUnavailable, "the server cannot reach its database; try again")
	default:
		s.config.Log.Error("client request failed", "path", r.URL.Path, "machine", p.machine.ShortString(), "error", err)
		http.Error(w, "internal error; see the server log", http.StatusInternalServerError)
	}
}
