package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/net/netmon"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/relayd"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// relayServer is the server's side of the connection to one relay. The test decides what it sends, and when.
type relayServer struct {
	*httptest.Server
	first   relay.Update      // the whole set of nodes
	updates chan relay.Update // sent to the open stream
	// revoke makes the response to reports say that the key is not valid. The first report waits for it, if it is not nil.
	revoke chan struct{}
	// end ends the open stream, and there is no other one.
	end chan struct{}
}

func newRelayServer(t *testing.T, nodes ...key.NodePublic) *relayServer {
	t.Helper()
	s := &relayServer{
		first:   relay.Update{Reset: true, Add: nodes},
		updates: make(chan relay.Update),
		end:     make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+relay.ReportPath, func(w http.ResponseWriter, r *http.Request) {
		if s.revoke == nil {
			return
		}
		select {
		case <-s.revoke:
			http.Error(w, "the relay was deleted", http.StatusUnauthorized)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET "+relay.FollowPath, s.follow)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *relayServer) follow(w http.ResponseWriter, r *http.Request) {
	send := func(u relay.Update) bool {
		return json.NewEncoder(w).Encode(u) == nil && http.NewResponseController(w).Flush() == nil
	}
	select {
	case <-s.end:
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	default:
	}
	if !send(s.first) || !send(relay.Update{Complete: true, Mesh: &relay.Mesh{Key: meshKey}}) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.end:
			return
		case u := <-s.updates:
			if !send(u) {
				return
			}
		}
	}
}

// send sends an update to the relay.
func (s *relayServer) send(t *testing.T, u relay.Update) {
	t.Helper()
	select {
	case s.updates <- u:
	case <-time.After(patience):
		t.Fatal("the relay does not follow the server")
	}
}

const meshKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// runningRelay is a relay inside this process.
type runningRelay struct {
	addr  string
	nodes string // the file with the stored nodes
	log   *waittest.Transcript
	// stop stops the relay, and wait waits for its end.
	stop func()
	wait func() error
}

var startedAt = regexp.MustCompile(`relay started.* listen=(\S+)`)

// startRelay starts a relay, which runs until the test ends.
func startRelay(t *testing.T, s *relayServer) *runningRelay {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir()
	r := &runningRelay{log: &waittest.Transcript{}, nodes: filepath.Join(dir, "nodes.json"), stop: cancel}
	ended := make(chan struct{})
	var result error
	var loop sync.WaitGroup
	loop.Go(func() {
		defer close(ended)
		result = app.RunRelay(ctx, app.RelayOptions{JoinKey: "flr_x", Server: s.URL, URL: "http://relay.example.com", Listen: "127.0.0.1:0", StateDir: dir, Log: r.log})
	})
	t.Cleanup(func() { cancel(); loop.Wait() })
	r.wait = func() error {
		t.Helper()
		select {
		case <-ended:
			return result
		case <-time.After(patience):
			t.Fatal("the relay does not end")
			return nil
		}
	}
	waittest.Eventually(t, patience, 5*time.Millisecond, func() error {
		found := startedAt.FindStringSubmatch(r.log.String())
		if found == nil {
			return errors.New("the relay has not started: " + r.log.String())
		}
		r.addr = found[1]
		return nil
	})
	return r
}

// connect returns a client that the relay serves.
func (r *runningRelay) connect(t *testing.T, k key.NodePrivate) *derphttp.Client {
	t.Helper()
	c, err := derphttp.NewClient(k, "http://"+r.addr+"/derp", logger.Discard, netmon.NewStatic())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Recv(); err != nil {
		t.Fatalf("the relay does not serve the client: %v", err)
	} else if _, ok := m.(derp.ServerInfoMessage); !ok {
		t.Fatalf("the first message is a %T", m)
	}
	return c
}

func TestManyDeletedNodesLoseTheirConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	const count, limit = 25, 10 * time.Second
	nodes, public := make([]key.NodePrivate, count), make([]key.NodePublic, count)
	for i := range nodes {
		nodes[i] = key.NewNode()
		public[i] = nodes[i].Public()
	}
	s := newRelayServer(t, public...)
	r := startRelay(t, s)
	var clients []*derphttp.Client
	for _, k := range nodes {
		clients = append(clients, r.connect(t, k))
	}
	late := key.NewNode()
	s.send(t, relay.Update{Remove: public})
	s.send(t, relay.Update{Add: []key.NodePublic{late.Public()}})
	began := time.Now()
	r.connect(t, late) // news arrives while connections are closed
	for _, c := range clients {
		for {
			if _, err := c.Recv(); err != nil {
				break
			}
		}
	}
	if took := time.Since(began); took > limit {
		t.Errorf("it took %v until %d deleted nodes had lost their connections", took, count)
	}
}

// stored waits until the relay has stored something that contains text.
func (r *runningRelay) stored(t *testing.T, text string) {
	t.Helper()
	waittest.Eventually(t, patience, 5*time.Millisecond, func() error {
		got, err := os.ReadFile(r.nodes)
		if err == nil && !strings.Contains(string(got), text) {
			err = fmt.Errorf("the relay has stored %s", got)
		}
		return err
	})
}

func TestRelayStoresTheLastChangesWhenItStops(t *testing.T) {
	t.Parallel()
	gone, late := key.NewNode(), key.NewNode()
	s := newRelayServer(t, gone.Public())
	r := startRelay(t, s)
	r.stored(t, gone.Public().String()) // the next change would be stored two seconds later
	s.send(t, relay.Update{Remove: []key.NodePublic{gone.Public()}, Add: []key.NodePublic{late.Public()}})
	r.connect(t, late)
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.nodes)
	if err != nil || strings.Contains(string(text), gone.Public().String()) || !strings.Contains(string(text), late.Public().String()) {
		t.Errorf("the stored nodes are not the last ones: %s, %v", text, err)
	}
}

func TestRelayRestartsOnceWithANewMeshKey(t *testing.T) {
	t.Parallel()
	s := newRelayServer(t)
	r := startRelay(t, s)
	r.stored(t, meshKey)
	next := strings.Repeat("ab", 32)
	s.send(t, relay.Update{Mesh: &relay.Mesh{Key: next}})
	waittest.Eventually(t, patience, 5*time.Millisecond, func() error {
		if log := r.log.String(); !strings.Contains(log, "restarting the relay") {
			return errors.New(log)
		}
		return nil
	})
	if text, err := os.ReadFile(r.nodes); err != nil || !strings.Contains(string(text), next) {
		t.Errorf("the relay restarts with the previous mesh key: %s, %v", text, err)
	}
}

func TestRevokedRelayKeepsNothing(t *testing.T) {
	t.Parallel()
	node, late := key.NewNode(), key.NewNode()
	s := newRelayServer(t, node.Public())
	s.revoke = make(chan struct{})
	r := startRelay(t, s)
	r.stored(t, node.Public().String())
	s.send(t, relay.Update{Add: []key.NodePublic{late.Public()}})
	r.connect(t, late)
	close(s.end)
	waittest.Eventually(t, patience, 5*time.Millisecond, func() error {
		if log := r.log.String(); !strings.Contains(log, "connection to the server lost") {
			return errors.New(log)
		}
		return nil
	})
	close(s.revoke)
	if err := r.wait(); !errors.Is(err, relayd.ErrRevoked) {
		t.Fatalf("a revoked relay ends with %v", err)
	}
	if text, err := os.ReadFile(r.nodes); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a revoked relay has stored %s, %v", text, err)
	}
}

func TestDeletedRelayLosesItsConnectionToTheOthers(t *testing.T) {
	t.Parallel()
	peer := key.NewNode()
	s := newRelayServer(t)
	r := startRelay(t, s)
	s.send(t, relay.Update{Mesh: &relay.Mesh{Key: meshKey, Peers: []relay.Peer{{Name: "ams-2", URL: "http://127.0.0.1:1", Key: peer.Public()}}}})
	c := r.connect(t, peer)
	s.send(t, relay.Update{Mesh: &relay.Mesh{Key: meshKey}})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			if _, err := c.Recv(); err != nil {
				return
			}
		}
	}()
	select {
	case <-closed:
	case <-time.After(patience): // less than the time between two checks of all connections
		t.Error("a deleted relay is still connected")
	}
}
