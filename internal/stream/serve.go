package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Request is a request for the map of a node. The caller has authenticated the node.
type Request struct {
	Node    mesh.NodeID
	NodeKey key.NodePublic
	// Compress is off for tools that read plain JSON. Tailscale clients set it.
	Compress bool
}

// ErrBroken means that the connection of a stream broke.
var ErrBroken = errors.New("connection lost")

// ErrGone means that there is no node with this id and key.
var ErrGone = errors.New("no such node")

var errTakenOver = fmt.Errorf("%w: a newer stream took over", ErrBroken)

// ErrBusy means that a node requests its map once while it is still being sent the previous one.
var ErrBusy = errors.New("this node is still being sent its map; read it before you request another one")

// Serve streams the map of a node to w until ctx ends, a newer stream of the
// node takes over, or the node is removed. It returns ErrGone if nothing was
// written because there is no such node.
func (h *Hub) Serve(ctx context.Context, w http.ResponseWriter, r Request) error {
	cursor := h.ledger.Cursor()
	if err := waitForNode(ctx, cursor, r); err != nil {
		return err
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // Run enforces a limit instead, until the stream is over
	defer func() { _ = out.SetWriteDeadline(time.Now().Add(writeLimit)) }()
	if !h.holdBack(ctx, r.Node) {
		return nil
	}
	session := h.begin(r.Node, func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) })
	defer h.finish(session)
	s := &streamState{Hub: h, request: r, session: session, w: w, out: out}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, session.wake)()
	h.postponeKeepAlive(session)
	for range session.poke {
		if err := s.poked(ctx); err != nil {
			return over(err)
		}
	}
	return nil
}

// errOver means that a stream is over, and that nothing is wrong.
var errOver = errors.New("stream is over")

func over(err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// poked handles everything for which a stream is woken.
func (s *streamState) poked(ctx context.Context) error {
	select {
	case <-s.session.end:
		return errOver
	default:
	}
	if ctx.Err() != nil {
		return errOver
	}
	if s.session.hasTurn() {
		sent, err := s.advance(ctx)
		if err != nil {
			return err
		}
		if sent {
			s.postponeKeepAlive(s.session)
		}
	}
	s.keepRecord()
	if url := s.session.ask.Load(); url != nil {
		s.session.ask.Store(nil)
		s.postponeKeepAlive(s.session)
		return s.ping(*url)
	}
	if s.clock.now() < s.session.due.Load() {
		return nil
	}
	s.postponeKeepAlive(s.session)
	return s.sendKeepAlive()
}

// Once writes the full map of a node as one message. It returns ErrBusy if it already does so, because a map can take megabytes until
// the client has read it.
func (h *Hub) Once(ctx context.Context, w http.ResponseWriter, r Request) error {
	if !h.beginOnce(r.Node) {
		return ErrBusy
	}
	defer h.endOnce(r.Node)
	cursor := h.ledger.Cursor()
	if err := waitForNode(ctx, cursor, r); err != nil {
		return err
	}
	s := &streamState{Hub: h, request: r, session: &session{}, w: w, out: http.NewResponseController(w)}
	_, err := s.full(ctx, func() *netmap.Scene { return h.cache.Scene(cursor.World()) })
	return err
}

// holdBack slows down two devices with the same state, such as a copied disk, that keep
// taking their node from each other: the next one waits. It returns false if the caller
// disconnected in the meantime.
func (h *Hub) holdBack(ctx context.Context, node mesh.NodeID) bool {
	if !h.isContested(node) {
		return true
	}
	wait := time.NewTimer(jitter(rivalry))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

// appearLimit is how long a committed change may take to be announced.
const appearLimit = 5 * time.Second

// waitForNode waits until the cursor has reached a world with the node: a node asks for
// its map milliseconds after it registered.
func waitForNode(ctx context.Context, c *ledger.Cursor, r Request) error {
	limit := time.NewTimer(appearLimit)
	defer limit.Stop()
	for !hasNode(c.World(), r) {
		select {
		case <-c.More():
			c.Skip()
		case <-limit.C:
			return ErrGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func hasNode(w *policy.World, r Request) bool {
	n, ok := w.Nodes.Get(r.Node)
	return ok && n.NodeKey == r.NodeKey
}

// streamState is a stream in progress.
type streamState struct {
	*Hub
	request Request
	session *session
	w       http.ResponseWriter
	out     *http.ResponseController
	held    bool    // whether the world has shown that the node is on this stream
	record  *record // of what is sent; nil most of the time
}

func (s *streamState) viewer() netmap.Viewer {
	return netmap.Viewer{Node: s.request.Node, Compress: s.request.Compress}
}

func (s *streamState) start(ctx context.Context) error {
	var at *netmap.Scene
	sent, err := s.full(ctx, func() *netmap.Scene {
		at = s.newest(s.session)
		return at
	})
	s.session.sending.Store(0)
	if err != nil {
		return err
	}
	s.settle(s.session)
	if s.sampleFull.CompareAndSwap(true, false) {
		s.offer(sample{viewer: s.viewer(), to: at, sent: sent})
	}
	return nil
}

// full sends the whole map of a scene and returns what it sent. Only a limited number of
// streams do that at a time: otherwise all of them would be late, and would delay the
// ledger. The scene is chosen after the wait.
func (s *streamState) full(ctx context.Context, choose func() *netmap.Scene) (sent [][]byte, err error) {
	release, err := s.acquire(ctx, s.fulls)
	if err != nil {
		return nil, err
	}
	defer release()
	at := choose()
	if !hasNode(at.World, s.request) {
		return nil, ErrGone
	}
	s.w.Header().Set("Content-Type", "application/octet-stream")
	parts, err := s.cache.Full(at, s.viewer(), time.Now().UTC())
	if err != nil {
		return nil, err
	}
	s.metrics.full.Inc()
	s.burst.add(s.clock.now())
	return parts, s.writeFull(parts)
}

// writeFull writes a full map, and lets streams go first that send updates. These take a fraction of the time of a full map, and
// changes are urgent. A map that has waited for long enough does not wait any more.
func (s *streamState) writeFull(parts [][]byte) error {
	begin := time.Now()
	for _, part := range parts {
		if s.turns.busy.Load() && time.Since(begin) < fullLimit/2 {
			runtime.Gosched()
		}
		select {
		case <-s.session.end:
			return errTakenOver
		default:
		}
		if err := s.writePart(part); err != nil {
			return err
		}
	}
	return s.flush()
}

// semaphore limits how many streams do something at a time. A stream counts for at most the limit, so that slow readers do not
// block others.
type semaphore struct {
	taken chan struct{}
	limit time.Duration
}

// acquire acquires a semaphore. The caller must call release.
func (s *streamState) acquire(ctx context.Context, want *semaphore) (release func(), err error) {
	select {
	case want.taken <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.session.end:
		return nil, errTakenOver
	}
	free := sync.OnceFunc(func() { <-want.taken })
	late := time.AfterFunc(want.limit, free)
	return func() {
		late.Stop()
		free()
	}, nil
}

// advance moves to the world that the hub is at, and sends what changed for the viewer. It
// reports whether it sent anything. It returns errOver if nothing else will be sent.
func (s *streamState) advance(ctx context.Context) (sent bool, err error) {
	defer s.turns.giveBack(s.session)
	from, to := s.take(s.session)
	defer s.session.sending.Store(0)
	if n, ok := to.scene.Nodes.Get(s.request.Node); ok && (n.NodeKey != s.request.NodeKey || s.supersededBy(n.Presence)) {
		return false, errOver
	}
	u, err := s.cache.Update(from.scene, to.scene, s.viewer(), toldBetween(from, to))
	if err != nil {
		return false, err
	}
	messages, err := s.send(ctx, u, to.scene)
	if err != nil {
		return false, err
	}
	if u.Gone {
		return true, errOver
	}
	if r := s.record; r != nil {
		if r.add(messages); r.size > maxRecord {
			s.session.record.CompareAndSwap(r, &record{})
		}
	}
	return len(messages) > 0, nil
}

// send writes an update to a scene, and returns what it wrote. If a full map follows, others need
// not wait for it.
func (s *streamState) send(ctx context.Context, u netmap.Update, to *netmap.Scene) (sent [][]byte, err error) {
	if len(u.Messages) > 0 {
		if !u.Full && !u.Gone {
			s.metrics.delta.Inc()
		}
		if err := s.write(u.Messages); err != nil {
			return nil, err
		}
	}
	if !u.Full {
		return u.Messages, nil
	}
	s.turns.letPass(s.session)
	full, err := s.full(ctx, func() *netmap.Scene { return to })
	return slices.Concat(u.Messages, full), err
}

// supersededBy reports whether another stream took the node over: the world shows another
// stream after it had shown this one.
func (s *streamState) supersededBy(now mesh.Presence) bool {
	mine := now.Replica == string(s.ledger.Cluster().Self().ID) && now.Conn == s.session.conn
	s.held = s.held || mine
	return s.held && now.Online && !mine
}

func (s *streamState) sendKeepAlive() error {
	s.metrics.alive.Inc()
	return s.write([][]byte{s.cache.KeepAlive(s.viewer())})
}

func (s *streamState) ping(url string) error {
	messages, err := s.cache.Ping(s.viewer(), url)
	if err != nil {
		return err
	}
	return s.write(messages)
}

// write sends messages.
func (s *streamState) write(messages [][]byte) error {
	for _, m := range messages {
		if err := s.writePart(m); err != nil {
			return err
		}
	}
	return s.flush()
}

// writePart writes a message or a part of one. It may stay in a buffer until flush.
func (s *streamState) writePart(part []byte) error {
	s.session.blocked.Store(s.clock.now())
	_, err := s.w.Write(part)
	s.session.blocked.Store(0)
	if err == nil {
		s.metrics.bytes.Add(float64(len(part)))
	}
	return s.broken(err)
}

func (s *streamState) flush() error {
	s.session.blocked.Store(s.clock.now())
	err := s.out.Flush()
	s.session.blocked.Store(0)
	return s.broken(err)
}

// broken returns the error of a connection, or nil if there is none.
func (s *streamState) broken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: node %d: %w", ErrBroken, s.request.Node, err)
}
