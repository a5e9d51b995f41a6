// Package relaylink serves relays that run as processes of their own: it receives their reports, sends them the keys of
// the nodes that they may admit, and checks that clients can reach them. A relay authenticates with its key.
//
// The relay's side of the connection is in package relayd, and both sides share the messages in package relay. Each stream is
// served on the goroutine of its request. A Prober starts a goroutine for each probe, and waits for it.
package relaylink

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/relay"
)

// Config is the configuration of a Server. All fields are required.
type Config struct {
	Relays *control.Relays
	Ledger *ledger.Ledger
	// MeshKey returns the key that the relays of a region have in common.
	MeshKey func(region int) string
	// Closed reports that this replica must not serve anyone, because its state may be outdated.
	Closed func() bool
	Log    *slog.Logger
}

// Server serves relays.
type Server struct {
	config Config

	mu   sync.Mutex
	open map[mesh.RelayID][]*follower // guarded by mu; the streams of each relay, oldest first
}

const (
	maxReport = 8 << 10
	// maxFollowers limits the streams of all relays, and maxOwn those of one. A relay has one, and another while it reconnects.
	maxFollowers = 400
	maxOwn       = 3
	// keepAlive is how often a stream without news gets an empty line, and checks whether the relay still exists.
	keepAlive    = 5 * time.Second
	writeTimeout = 20 * time.Second
	// gap is the minimum time between two looks at the nodes.
	gap = 20 * time.Millisecond
)

// New returns a Server.
func New(c Config) *Server { return &Server{config: c, open: map[mesh.RelayID][]*follower{}} }

// Routes returns the handlers by pattern.
func (s *Server) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST " + relay.ReportPath: http.HandlerFunc(s.report),
		"GET " + relay.FollowPath:  http.HandlerFunc(s.follow),
	}
}

// authenticate returns the relay that sends a request, or responds with an error.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (*mesh.Relay, bool) {
	if s.config.Closed() {
		http.Error(w, "this replica cannot reach the database; try again", http.StatusServiceUnavailable)
		return nil, false
	}
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	found, err := s.config.Relays.Authenticate(r.Context(), text)
	if err != nil {
		s.fail(w, r, err)
		return nil, false
	}
	guard.Prove(r.Context())
	return found, true
}

// fail maps an error to a response.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *control.Refusal
	switch {
	case errors.Is(err, control.ErrRelayInUse): // with another status, the process would not try again
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case !errors.As(err, &refusal):
		s.config.Log.Warn("relay request failed", "path", r.URL.Path, "error", err)
		http.Error(w, "the server cannot process this now; try again", http.StatusServiceUnavailable)
	case refusal.Reason == control.Denied:
		http.Error(w, refusal.Text, http.StatusUnauthorized)
	case refusal.Reason == control.Conflict:
		http.Error(w, refusal.Text, http.StatusConflict)
	default:
		http.Error(w, refusal.Text, http.StatusBadRequest)
	}
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	from, ok := s.authenticate(w, r)
	if !ok {
		return
	}
	var in relay.Report
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReport)).Decode(&in); err != nil {
		http.Error(w, "invalid report: "+err.Error(), http.StatusBadRequest)
		return
	}
	var err error
	if in.Leaving {
		err = s.config.Relays.Leave(r.Context(), from.ID, in.Key)
	} else {
		place := mesh.RelayPlace{URL: strings.TrimSuffix(in.URL, "/"), STUNPort: in.STUNPort, IPv4: in.IPv4, IPv6: in.IPv6, Key: in.Key, Version: in.Version}
		err = s.config.Relays.Report(r.Context(), from.ID, place, mesh.RelayReport{
			Clients: in.Clients, BytesReceived: in.BytesReceived, BytesSent: in.BytesSent, Refused: in.Refused, LatencyMicros: in.LatencyMicros, Peers: in.Peers,
		})
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}\n"))
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	from, ok := s.authenticate(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := &follower{server: s, id: from.ID, end: cancel, w: w, rc: http.NewResponseController(w), sent: map[mesh.NodeID]key.NodePublic{}}
	if !s.enter(f) {
		http.Error(w, "too many relays follow this replica; try again", http.StatusServiceUnavailable)
		return
	}
	defer s.leave(f)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no") // tells proxies such as nginx not to buffer
	_ = f.rc.SetReadDeadline(time.Time{})     // a connection on which it cannot be set has no deadline
	if err := f.run(ctx); err != nil {
		s.config.Log.Debug("relay stream ended", "relay", from.Name, "error", err)
	}
}

// enter adds a stream, and ends the oldest of the same relay if it has too many. It returns false if all relays together have
// too many.
func (s *Server) enter(f *follower) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.open[f.id]
	switch {
	case len(own) >= maxOwn:
		own[0].end()
		own = own[1:]
	case s.streams() >= maxFollowers:
		return false
	}
	s.open[f.id] = append(own, f)
	return true
}

// streams counts the streams of all relays. The caller holds mu.
func (s *Server) streams() (n int) {
	for _, own := range s.open {
		n += len(own)
	}
	return n
}

// leave removes a stream, unless enter has already done so.
func (s *Server) leave(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.open[f.id], func(other *follower) bool { return other == f })
	if s.open[f.id] = left; len(left) == 0 {
		delete(s.open, f.id)
	}
}

// follower is one stream.
type follower struct {
	server *Server
	id     mesh.RelayID
	end    context.CancelFunc
	w      http.ResponseWriter
	rc     *http.ResponseController
	sent   map[mesh.NodeID]key.NodePublic
	mesh   relay.Mesh
}

var errGone = errors.New("the relay was deleted")

func (f *follower) run(ctx context.Context) error {
	cursor := f.server.config.Ledger.Cursor()
	if err := f.begin(cursor.World()); err != nil {
		return err
	}
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if f.server.config.Closed() {
				return errors.New("this replica cannot reach the database")
			}
			if err := f.write(relay.Update{}); err != nil {
				return err
			}
		case <-cursor.More():
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(gap):
			}
			touched := cursor.Skip()
			if err := f.advance(cursor.World(), touched); err != nil {
				return err
			}
		}
	}
}

// begin sends all nodes.
func (f *follower) begin(w *policy.World) error {
	var keys []key.NodePublic
	for n := range w.Nodes.All() {
		if !n.CutOff() {
			f.sent[n.ID] = n.NodeKey
			keys = append(keys, n.NodeKey)
		}
	}
	first := relay.Update{Reset: true}
	for chunk := range slices.Chunk(keys, relay.MaxUpdateKeys) {
		first.Add = chunk
		if err := f.write(first); err != nil {
			return err
		}
		first = relay.Update{}
	}
	var err error
	if f.mesh, err = f.meshIn(w); err != nil {
		return err
	}
	return f.write(relay.Update{Reset: first.Reset, Complete: true, Mesh: &f.mesh})
}

// advance sends what has changed. touched is nil if any node may have.
func (f *follower) advance(w *policy.World, touched []mesh.NodeID) error {
	if touched == nil {
		for n := range w.Nodes.All() {
			touched = append(touched, n.ID)
		}
		for id := range f.sent {
			if _, ok := w.Nodes.Get(id); !ok {
				touched = append(touched, id)
			}
		}
	}
	var out relay.Update
	for _, id := range touched {
		var now key.NodePublic
		if n, ok := w.Nodes.Get(id); ok && !n.CutOff() {
			now = n.NodeKey
		}
		before := f.sent[id]
		if now == before {
			continue
		}
		if !before.IsZero() {
			out.Remove = append(out.Remove, before)
			delete(f.sent, id)
		}
		if !now.IsZero() {
			out.Add = append(out.Add, now)
			f.sent[id] = now
		}
		if len(out.Add)+len(out.Remove) >= relay.MaxUpdateKeys {
			if err := f.write(out); err != nil {
				return err
			}
			out = relay.Update{}
		}
	}
	m, err := f.meshIn(w)
	if err != nil {
		return err
	}
	if m.Key != f.mesh.Key || !slices.Equal(m.Peers, f.mesh.Peers) {
		f.mesh, out.Mesh = m, &m
	}
	if out.Mesh == nil && len(out.Add)+len(out.Remove) == 0 {
		return nil
	}
	return f.write(out)
}

// meshIn returns the other relays of the region. Draining relays are among them, because clients still use them.
func (f *follower) meshIn(w *policy.World) (relay.Mesh, error) {
	own, ok := w.Relays.Get(f.id)
	if !ok {
		return relay.Mesh{}, errGone
	}
	m := relay.Mesh{Key: f.server.config.MeshKey(own.Region)}
	for r := range w.Relays.All() {
		if r.ID != f.id && r.Region == own.Region && r.Joined() {
			m.Peers = append(m.Peers, relay.Peer{Name: r.Name, URL: r.Place.URL, Key: r.Place.Key})
		}
	}
	return m, nil
}

func (f *follower) write(u relay.Update) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := f.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := f.w.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.rc.Flush()
}
