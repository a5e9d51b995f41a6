// Package relayd is a relay's connection to the server: it reports, follows the set of nodes that the relay may admit, and
// stores this set, so that the relay works while the server is away and after a restart.
//
// The server's side is package relaylink. This package serves no clients: package relay does, and package app combines the two.
package relayd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

// Config is the configuration of a Member. All fields are required.
type Config struct {
	Server  string // URL of the server
	JoinKey string
	// StatePath is the file in which the set of nodes is stored.
	StatePath string
	// Report returns the current report.
	Report func() relay.Report
	// Removed is called after nodes or other relays of the region were removed. It must not wait, because nothing is received meanwhile.
	Removed func()
	Version string
	Log     *slog.Logger
}

// Member is a relay's membership in the mesh.
type Member struct {
	config Config
	client *http.Client

	mu        sync.Mutex
	known     map[key.NodePublic]struct{} // guarded by mu, as are the fields below; nil until there is a set of nodes
	mesh      relay.Mesh
	changed   chan struct{} // closed and replaced at each change of the fields above
	connected bool          // whether the stream is open and complete
	latency   time.Duration // of the last report
	revoked   bool          // whether the server has rejected the relay's key

	dirty chan struct{} // has a value if the state must be stored
}

const (
	reportEvery = 15 * time.Second
	// silence is how long the server may send nothing. It sends a line every five seconds.
	silence    = 20 * time.Second
	firstRetry = 500 * time.Millisecond
	lastRetry  = 3 * time.Second
	// storeEvery is the minimum time between two writes of the state.
	storeEvery = 2 * time.Second
	// newcomer is how long a client with an unknown key waits for the news that it has joined.
	newcomer     = time.Second
	maxRefusal   = 1 << 10
	maxStateSize = 64 << 20
)

// ErrRevoked means that the server does not accept the relay's key.
var ErrRevoked = errors.New("the server does not accept this relay's key")

// errRefused is a request that the server will never accept.
type errRefused struct{ text string }

func (e errRefused) Error() string { return e.text }

// state is what is stored.
type state struct {
	Keys []key.NodePublic `json:"keys"`
	Mesh relay.Mesh       `json:"mesh"`
}

// Open returns a Member with the stored set of nodes, if there is one.
func Open(c Config) (*Member, error) {
	m := &Member{
		config: c, client: &http.Client{}, changed: make(chan struct{}), dirty: make(chan struct{}, 1),
	}
	m.config.Server = strings.TrimSuffix(c.Server, "/")
	f, err := os.Open(c.StatePath)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the stored nodes: %w", err)
	}
	defer f.Close()
	var s state
	if err := json.NewDecoder(io.LimitReader(f, maxStateSize)).Decode(&s); err != nil || s.Mesh.Key == "" {
		c.Log.Warn("stored nodes are damaged, waiting for the server", "file", c.StatePath, "error", err)
		return m, nil
	}
	m.known, m.mesh = set(s.Keys), s.Mesh
	return m, nil
}

func set(keys []key.NodePublic) map[key.NodePublic]struct{} {
	s := make(map[key.NodePublic]struct{}, len(keys))
	for _, k := range keys {
		s[k] = struct{}{}
	}
	return s
}

// Mesh returns how to connect to the other relays, and a channel that is closed at the next change. ok is false until there
// is a set of nodes.
func (m *Member) Mesh() (now relay.Mesh, changed <-chan struct{}, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mesh, m.changed, m.known != nil
}

// Nodes returns the number of known nodes, and whether the server sends changes.
func (m *Member) Nodes() (n int, connected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.known), m.connected
}

// IsPeer reports whether a key is that of another relay of the region.
func (m *Member) IsPeer(k key.NodePublic) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isPeer(k)
}

func (m *Member) isPeer(k key.NodePublic) bool {
	return slices.ContainsFunc(m.mesh.Peers, func(p relay.Peer) bool { return p.Key == k })
}

// Known reports whether a key is that of a node, or of another relay of the region.
func (m *Member) Known(k key.NodePublic) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isKnown(k)
}

func (m *Member) isKnown(k key.NodePublic) bool {
	_, known := m.known[k]
	return known || m.isPeer(k)
}

// Verify is Known for a client that connects. It asks nobody. A device that has just joined may be faster than the news of it,
// so Verify waits a moment for an unknown key.
func (m *Member) Verify(ctx context.Context, k key.NodePublic) bool {
	late := time.NewTimer(newcomer)
	defer late.Stop()
	for {
		m.mu.Lock()
		known := m.isKnown(k)
		changed, connected := m.changed, m.connected
		m.mu.Unlock()
		if known || !connected {
			return known
		}
		select {
		case <-ctx.Done():
			return false
		case <-late.C:
			return false
		case <-changed:
		}
	}
}

// Follow follows the set of nodes until ctx ends, or the server does not accept the relay's key.
func (m *Member) Follow(ctx context.Context) error {
	retry, failing := firstRetry, false
	for ctx.Err() == nil {
		complete, err := m.stream(ctx)
		if m.disconnected(); errors.Is(err, ErrRevoked) {
			return err
		}
		if complete {
			retry, failing = firstRetry, false
		}
		if ctx.Err() == nil && !failing {
			nodes, _ := m.Nodes()
			m.config.Log.Warn("connection to the server lost, admitting the nodes known so far", "nodes", nodes, "error", err)
			failing = true
		}
		pause(ctx, retry/2+rand.N(retry))
		retry = min(2*retry, lastRetry)
	}
	return nil
}

func (m *Member) disconnected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// request sends a request with the relay's key.
func (m *Member) request(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, m.config.Server+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+m.config.JoinKey)
	req.Header.Set("User-Agent", "fairlead-relay/"+m.config.Version)
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	switch why := strings.TrimSpace(string(text)); resp.StatusCode {
	case http.StatusUnauthorized:
		m.mu.Lock()
		m.revoked = true
		m.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrRevoked, why)
	case http.StatusBadRequest, http.StatusConflict:
		return nil, errRefused{why}
	default:
		return nil, fmt.Errorf("unexpected response: %s: %s", resp.Status, why)
	}
}

// stream reads one stream. complete reports whether it contained the whole set of nodes.
func (m *Member) stream(ctx context.Context) (complete bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	resp, err := m.request(ctx, http.MethodGet, relay.FollowPath, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 4<<10), relay.MaxUpdate)
	var next map[key.NodePublic]struct{} // the set that is being received
	for lines.Scan() {
		watch.Reset(silence)
		var u relay.Update
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil {
			return complete, fmt.Errorf("unexpected message: %w", err)
		}
		if u.Reset {
			next = map[key.NodePublic]struct{}{}
		}
		if next != nil && !u.Complete {
			for _, k := range u.Add {
				next[k] = struct{}{}
			}
			continue
		}
		if u.Complete {
			complete = true
			m.config.Log.Info("connected to the server", "nodes", len(next))
		}
		m.apply(next, u)
		next = nil
	}
	return complete, errors.Join(lines.Err(), errors.New("the stream ended"))
}

// apply applies a change. whole is the new set of nodes, if the line completes it.
func (m *Member) apply(whole map[key.NodePublic]struct{}, u relay.Update) {
	if whole == nil && len(u.Add)+len(u.Remove) == 0 && u.Mesh == nil {
		return
	}
	m.mu.Lock()
	removed := len(u.Remove) > 0
	if whole != nil {
		for k := range m.known {
			if _, still := whole[k]; !still {
				removed = true
			}
		}
		m.known, m.connected = whole, true
	}
	for _, k := range u.Remove {
		delete(m.known, k)
	}
	for _, k := range u.Add {
		m.known[k] = struct{}{}
	}
	if u.Mesh != nil {
		before := m.mesh.Peers
		m.mesh = *u.Mesh
		removed = removed || slices.ContainsFunc(before, func(p relay.Peer) bool { return !m.isPeer(p.Key) })
	}
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	select {
	case m.dirty <- struct{}{}:
	default:
	}
	if removed {
		m.config.Removed()
	}
}

// Store stores the state after each change, until ctx ends. Close stores the last changes.
func (m *Member) Store(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-m.dirty:
		}
		m.store()
		pause(ctx, storeEvery)
	}
	return nil
}

// Close stores the changes that are not stored yet. If the server has rejected the relay's key, Close removes what is stored
// instead, so that the relay admits nobody after a restart. Follow, Store and SendReports must have returned.
func (m *Member) Close() {
	m.mu.Lock()
	revoked := m.revoked
	m.mu.Unlock()
	if revoked {
		if err := os.Remove(m.config.StatePath); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.config.Log.Error("cannot remove the stored nodes of a relay that was deleted; remove the file", "error", err)
		}
		return
	}
	select {
	case <-m.dirty:
		m.store()
	default:
	}
}

func (m *Member) store() {
	m.mu.Lock()
	s := state{slices.Collect(maps.Keys(m.known)), m.mesh}
	m.mu.Unlock()
	if err := writeState(m.config.StatePath, s); err != nil {
		m.config.Log.Error("cannot store the nodes; if the relay restarts while the server is away, it admits nobody", "error", err)
	}
}

// writeState writes the file atomically. Only the owner may read it, because it contains the mesh key.
func writeState(path string, s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".nodes-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after success there is nothing to remove
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// SendReports reports until ctx ends, and then that the relay stops. It returns an error if the server will never accept the
// reports.
func (m *Member) SendReports(ctx context.Context) error {
	joined, failing := false, false
	for ctx.Err() == nil {
		err := m.send(ctx, false)
		var refused errRefused
		wait := reportEvery
		switch {
		case ctx.Err() != nil:
		case err == nil && !joined:
			joined = true
			m.config.Log.Info("relay joined", "url", m.config.Report().URL)
		case errors.Is(err, ErrRevoked):
			return err
		case errors.As(err, &refused):
			return fmt.Errorf("the server rejected this relay: %w", err)
		case err != nil:
			if wait = 2 * time.Second; !failing {
				m.config.Log.Warn("report not sent, retrying", "error", err)
			}
		}
		failing = err != nil
		pause(ctx, wait)
	}
	if errors.Is(context.Cause(ctx), ErrRevoked) {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if err := m.send(last, true); err != nil {
		m.config.Log.Warn("the server does not know that this relay stops", "error", err)
	}
	return nil
}

func (m *Member) send(ctx context.Context, leaving bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	report := m.config.Report()
	m.mu.Lock()
	report.Version, report.Leaving, report.LatencyMicros = m.config.Version, leaving, m.latency.Microseconds()
	m.mu.Unlock()
	text, err := json.Marshal(report)
	if err != nil {
		return err
	}
	began := time.Now()
	resp, err := m.request(ctx, http.MethodPost, relay.ReportPath, bytes.NewReader(text))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusal)) // so that the connection can be reused
	_ = resp.Body.Close()
	m.mu.Lock()
	m.latency = time.Since(began)
	m.mu.Unlock()
	return nil
}
