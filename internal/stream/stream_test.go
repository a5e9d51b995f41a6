package stream_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/tailcfg"
	"tailscale.com/util/zstdframe"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/stream"
)

// bench is a hub over a real ledger, behind a real HTTP server.
type bench struct {
	*testing.T
	ledger  *ledger.Ledger
	metrics *prometheus.Registry
	hub     *stream.Hub
	url     string
	client  *http.Client

	mu     sync.Mutex
	opened []mesh.NodeID // guarded by mu
	closed []mesh.NodeID // guarded by mu
}

func (b *bench) Opened(id mesh.NodeID, _ int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, id)
}

func (b *bench) Closed(id mesh.NodeID, _ int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = append(b.closed, id)
}

func newBench(t *testing.T, nodes int) *bench {
	t.Helper()
	reg := prometheus.NewRegistry()
	db, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db.sqlite"), reg)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	l, err := ledger.Open(t.Context(), ledger.Config{Store: db, Log: log, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = l.Run(ctx) })
	b := &bench{T: t, ledger: l}
	b.metrics = reg
	b.hub = stream.New(stream.Config{Ledger: l, Presence: b, Log: log, Registerer: reg, KeepAlive: 300 * time.Millisecond})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var id int64
		_, _ = fmt.Sscan(r.URL.Query().Get("node"), &id)
		n := mesh.NodeID(id)
		err := b.hub.Serve(r.Context(), w, stream.Request{Node: n, NodeKey: meshgen.NodeKey(uint64(n)), Compress: r.URL.Query().Get("plain") == ""})
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	loops.Go(func() { b.hub.Follow(ctx) })
	b.url, b.client = server.URL, server.Client()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		stop()
		loops.Wait()
		_ = db.Close()
	})
	b.commit(mesh.UserPut{User: meshgen.User(1)})
	for i := 1; i <= nodes; {
		var evs []mesh.Event
		for ; i <= nodes && len(evs) < 256; i++ {
			evs = append(evs, mesh.NodePut{Node: meshgen.Node(mesh.NodeID(i), 1)})
		}
		b.commit(evs...)
	}
	return b
}

// run runs the hub until the test ends, so that streams get keep-alives. It also takes all samples.
func (b *bench) run() {
	ctx, stop := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { _ = b.hub.Run(ctx) })
	b.Cleanup(func() {
		stop()
		loop.Wait()
	})
}

func (b *bench) commit(evs ...mesh.Event) {
	b.Helper()
	rev, err := b.ledger.Commit(b.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil })
	if err != nil {
		b.Fatal(err)
	}
	for b.ledger.Cursor().World().Rev < rev { // the revision has not been announced yet
		runtime.Gosched()
	}
}

// reader reads one stream as a client does.
type reader struct {
	*bench
	body io.ReadCloser
}

func (b *bench) open(query string) *reader {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+"?"+query, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = res.Body.Close() })
	return &reader{b, res.Body}
}

func (r *reader) raw() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.body, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(size[:]))
	_, err := io.ReadFull(r.body, body)
	return body, err
}

// next returns the next message that is not a keep-alive, and its text.
func (r *reader) next() (m tailcfg.MapResponse, text string) {
	r.Helper()
	for {
		body, err := r.raw()
		if err != nil {
			r.Fatal(err)
		}
		doc, err := zstdframe.AppendDecode(nil, body)
		if err != nil {
			r.Fatal(err)
		}
		m = tailcfg.MapResponse{}
		if err := json.Unmarshal(doc, &m); err != nil {
			r.Fatalf("%v: %s", err, doc)
		}
		if !m.KeepAlive {
			return m, string(doc)
		}
	}
}

func TestSplicedMapIsTheFullMap(t *testing.T) {
	b := newBench(t, 700)
	b.commit(mesh.NodeGone{ID: 65}, mesh.NodeGone{ID: 64})
	for id := range 62 { // a whole block is empty, so it must not leave a comma behind
		b.commit(mesh.NodeGone{ID: mesh.NodeID(130 + id)})
	}
	b.commit(mesh.NodeGone{ID: 128}, mesh.NodeGone{ID: 129})
	for _, viewer := range []mesh.NodeID{1, 63, 66, 127, 300, 700} {
		m, text := b.open(fmt.Sprintf("node=%d", viewer)).next()
		w := b.ledger.World()
		full := netmap.Full(netmap.SceneOf(w, nil), viewer)
		full.ControlTime = m.ControlTime
		want, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(members(t, want), members(t, []byte(text))); diff != "" {
			t.Fatalf("viewer %d: %s", viewer, diff)
		}
		if len(m.Peers) != w.Nodes.Len()-1 {
			t.Fatalf("viewer %d sees %d of %d", viewer, len(m.Peers), w.Nodes.Len())
		}
	}
}

func members(t *testing.T, doc []byte) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestChangesReachViewersAsPatches(t *testing.T) {
	b := newBench(t, 3)
	one, two := b.open("node=1"), b.open("node=2")
	one.next()
	two.next()
	b.commit(mesh.NodeNet{ID: 1, Net: meshgen.Net(5)})
	m, text := two.next()
	if len(m.PeersChangedPatch) != 1 || m.PeersChangedPatch[0].NodeID != 1 || len(m.PeersChangedPatch[0].Endpoints) != 2 || m.Node != nil || m.DNSConfig != nil {
		t.Fatalf("two hears %s", text)
	}
	b.commit(mesh.NodePut{Node: meshgen.Node(4, 1)})
	for name, r := range map[string]*reader{"one": one, "two": two} {
		if m, text := r.next(); len(m.PeersChanged) != 1 || m.PeersChanged[0].ID != 4 || len(m.UserProfiles) != 1 {
			t.Fatalf("%s hears %s", name, text) // a viewer is not sent its own endpoints, so this is the next message for both
		}
	}
	b.commit(mesh.NodeGone{ID: 4})
	if m, text := one.next(); !slices.Equal(m.PeersRemoved, []tailcfg.NodeID{4}) {
		t.Fatalf("one hears %s", text)
	}
}

func TestChangeDuringTheFirstMapFollowsIt(t *testing.T) {
	b := newBench(t, 3)
	b.hub.BeforeFull(func() {
		b.commit(mesh.NodeNet{ID: 2, Net: meshgen.Net(5)})
		for !b.hub.IsBehind(1) {
			runtime.Gosched()
		}
	})
	one := b.open("node=1")
	if m, text := one.next(); len(m.Peers) != 2 {
		t.Fatalf("the first message is %s", text)
	}
	if m, text := one.next(); len(m.PeersChangedPatch) != 1 || m.PeersChangedPatch[0].NodeID != 2 {
		t.Fatalf("the second message is %s", text)
	}
	b.commit(mesh.NodeNet{ID: 3, Net: meshgen.Net(6)})
	if m, text := one.next(); len(m.PeersChangedPatch) != 1 || m.PeersChangedPatch[0].NodeID != 3 {
		t.Fatalf("the third message is %s", text)
	}
}

func TestRemovedNodeIsToldBeforeItIsCutOff(t *testing.T) {
	b := newBench(t, 2)
	one := b.open("node=1")
	one.next()
	b.commit(mesh.NodeGone{ID: 1})
	m, text := one.next()
	if m.Node == nil || m.Node.KeyExpiry.IsZero() || m.Node.KeyExpiry.After(time.Now().Add(-time.Hour)) {
		t.Fatalf("the last message is %s", text)
	}
	if _, err := one.raw(); err == nil {
		t.Fatal("the stream goes on")
	}
}

func TestNewerStreamTakesOver(t *testing.T) {
	b := newBench(t, 2)
	older := b.open("node=1")
	older.next()
	newer := b.open("node=1")
	newer.next()
	for { // keep-alives may be under way
		if _, err := older.raw(); err != nil {
			break
		}
	}
	b.commit(mesh.NodeNet{ID: 2, Net: meshgen.Net(5)})
	newer.next()
	if got := b.hub.Count(); got != 1 {
		t.Fatalf("%d streams", got)
	}
}

// unread is a client that reads nothing.
type unread struct {
	http.ResponseWriter
	writing chan struct{} // receives a value when a write begins
	cut     chan struct{}
	cutOnce sync.Once
}

func newUnread() *unread {
	return &unread{ResponseWriter: httptest.NewRecorder(), writing: make(chan struct{}, 100), cut: make(chan struct{})}
}

func (u *unread) Write([]byte) (int, error) {
	u.writing <- struct{}{}
	<-u.cut
	return 0, os.ErrDeadlineExceeded
}

func (u *unread) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		u.cutOnce.Do(func() { close(u.cut) })
	}
	return nil
}

func TestTakeoverEndsAStreamThatIsNotRead(t *testing.T) {
	b := newBench(t, 1)
	older := newUnread()
	ended := make(chan error)
	go func() {
		ended <- b.hub.Serve(t.Context(), older, stream.Request{Node: 1, NodeKey: meshgen.NodeKey(1), Compress: true})
	}()
	<-older.writing
	b.open("node=1").next()
	if err := <-ended; !errors.Is(err, stream.ErrBroken) { // the test would time out: the hub does not run
		t.Errorf("the older stream ended with %v", err)
	}
}

func TestNodeIsSentOneMapAtATime(t *testing.T) {
	b := newBench(t, 2)
	first := newUnread()
	ended := make(chan error)
	request := func(w http.ResponseWriter, id mesh.NodeID) error {
		return b.hub.Once(t.Context(), w, stream.Request{Node: id, NodeKey: meshgen.NodeKey(uint64(id))})
	}
	go func() { ended <- request(first, 1) }()
	<-first.writing
	if err := request(httptest.NewRecorder(), 1); !errors.Is(err, stream.ErrBusy) {
		t.Errorf("the second request ended with %v", err)
	}
	if err := request(httptest.NewRecorder(), 2); err != nil {
		t.Errorf("another node: %v", err)
	}
	_ = first.SetWriteDeadline(time.Unix(1, 0)) // never fails
	if err := <-ended; err == nil {
		t.Error("the first request succeeded")
	}
	if err := request(httptest.NewRecorder(), 1); err != nil {
		t.Errorf("the third request: %v", err)
	}
}

func TestStreamEndsWhenAnotherReplicaHoldsTheNode(t *testing.T) {
	b := newBench(t, 1)
	b.run()
	one := b.open("node=1")
	one.next()
	conn := b.hub.Conn(1)
	b.commit(mesh.Online{ID: 1, Replica: "other", Conn: 5, At: meshgen.Start}) // an older claim, from before this stream
	b.commit(mesh.Online{ID: 1, Replica: string(b.ledger.Cluster().Self().ID), Conn: conn, At: meshgen.Start})
	for b.hub.Rev(1) < b.ledger.World().Rev { // a stream that skipped the world with its own claim would end
		runtime.Gosched()
	}
	b.commit(mesh.Offline{ID: 1, At: meshgen.Start}) // a mistake that presence corrects
	if _, err := one.raw(); err != nil {
		t.Fatalf("the stream ended too early: %v", err)
	}
	b.commit(mesh.Online{ID: 1, Replica: "other", Conn: 6, At: meshgen.Start})
	for {
		if _, err := one.raw(); err != nil {
			return
		}
	}
}

func TestKeepAliveIsAlwaysTheSame(t *testing.T) {
	b := newBench(t, 1)
	b.run()
	one := b.open("node=1")
	one.next()
	first, err := one.raw()
	if err != nil {
		t.Fatal(err)
	}
	second, err := one.raw()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if doc, err := zstdframe.AppendDecode(nil, first); err != nil || string(doc) != `{"KeepAlive":true}` {
		t.Errorf("%s, %v", doc, err)
	}
}

func TestNodeThatIsNotThereGetsNoStream(t *testing.T) {
	b := newBench(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.hub.Serve(ctx, httptest.NewRecorder(), stream.Request{Node: 9, Compress: true}); err == nil {
		t.Fatal("served")
	}
	if len(b.opened) != 0 {
		t.Fatal("presence was told")
	}
}

func TestRenamedMeshRenamesALonelyNode(t *testing.T) {
	b := newBench(t, 1)
	one := b.open("node=1")
	one.next()
	b.commit(b.ledger.World().SettingPutFor(mesh.SettingDNS, `{"baseDomain":"new.example","magicDNS":true}`, "config", true, 1)...)
	if m, text := one.next(); len(m.PeersChanged) > 0 || m.Node == nil || m.Node.Name != "host-1.new.example." {
		t.Errorf("the node hears %s", text)
	}
}

// A new stream of a node that is already online is not a change.
func TestReconnectTouchesNobody(t *testing.T) {
	b := newBench(t, 3)
	b.commit(mesh.Online{ID: 2, Replica: "a", Conn: 1, At: meshgen.Start + 9})
	one := b.open("node=1")
	one.next()
	b.commit(mesh.Online{ID: 2, Replica: "b", Conn: 2, At: meshgen.Start + 9})
	b.commit(mesh.NodeNet{ID: 3, Net: meshgen.Net(3)})
	if m, text := one.next(); len(m.PeersChangedPatch) != 1 || m.PeersChangedPatch[0].NodeID != 3 {
		t.Errorf("the first news are %s", text)
	}
}

// Memory is returned once after many full maps, not while they are sent, and not after a few.
func TestBurstIsOverOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	var b stream.Burst
	for range stream.ManyFulls - 1 {
		b.Add(now)
	}
	if b.IsOver(now.Add(time.Hour)) {
		t.Error("few full maps are a burst")
	}
	b.Add(now)
	if b.IsOver(now.Add(stream.BurstPause / 2)) {
		t.Error("a burst is over although the last full map was just sent")
	}
	if later := now.Add(stream.BurstPause); !b.IsOver(later) || b.IsOver(later) {
		t.Error("a burst is not over exactly once")
	}
}
