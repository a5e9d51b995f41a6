package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Request asks for the map of a node. The caller has proven that the node is
// the viewer's.
type Request struct {
	Node    mesh.NodeID
	NodeKey key.NodePublic
	// Compress is off for tools that read plain JSON; every client compresses.
	Compress bool
}

// ErrBroken says that the connection of a stream broke.
var ErrBroken = errors.New("the connection broke")

// ErrGone says that the node is not, or no longer, there with this key.
var ErrGone = errors.New("no such node")

// Serve streams the map of a node to w until ctx ends, a newer stream of the
// node takes over, or the node is removed. It returns ErrGone if nothing was
// written because there is no such node.
func (h *Hub) Serve(ctx context.Context, w http.ResponseWriter, r Request) error {
	cursor := h.ledger.Cursor()
	if err := appear(ctx, cursor, r); err != nil {
		return err
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // Run watches over it instead
	if !h.holdBack(ctx, r.Node) {
		return nil
	}
	s := h.begin(r.Node, func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) })
	defer h.finish(s)
	p := &play{Hub: h, request: r, session: s, cursor: cursor, w: w, out: out}
	if err := p.start(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(jitter(h.keepAlive))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.end:
			return nil
		case <-timer.C:
			if err := p.keepAlive(); err != nil {
				return err
			}
			timer.Reset(jitter(h.keepAlive))
		case url := <-s.ask:
			if err := p.send(&netmap.Response{PingRequest: &netmap.PingRequest{URL: url, URLIsNoise: true}}); err != nil {
				return err
			}
			timer.Reset(jitter(h.keepAlive))
		case <-cursor.More():
			sent, over, err := p.advance(ctx)
			if err != nil || over {
				return err
			}
			if sent {
				timer.Reset(jitter(h.keepAlive))
			}
		}
	}
}

// Once writes the whole map of a node as one message.
func (h *Hub) Once(ctx context.Context, w http.ResponseWriter, r Request) error {
	cursor := h.ledger.Cursor()
	if err := appear(ctx, cursor, r); err != nil {
		return err
	}
	p := &play{Hub: h, request: r, session: &session{}, cursor: cursor, w: w, out: http.NewResponseController(w)}
	return p.start(ctx)
}

// holdBack keeps two devices that use the same state, such as a copied disk, from
// taking their node from each other as fast as they can: the next one waits. It
// is false when the caller has left meanwhile.
func (h *Hub) holdBack(ctx context.Context, node mesh.NodeID) bool {
	if !h.contested(node) {
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

// appearLimit is how long the announcement of a commit may take.
const appearLimit = 5 * time.Second

// appear waits until the cursor is at a world that has the node: a node asks for
// its map milliseconds after it registered.
func appear(ctx context.Context, c *ledger.Cursor, r Request) error {
	limit := time.NewTimer(appearLimit)
	defer limit.Stop()
	for !present(c.World(), r) {
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

func present(w *policy.World, r Request) bool {
	n, ok := w.Node(r.Node)
	return ok && n.NodeKey == r.NodeKey
}

// play is a stream in progress.
type play struct {
	*Hub
	request Request
	session *session
	cursor  *ledger.Cursor
	w       http.ResponseWriter
	out     *http.ResponseController
	at      *netmap.Scene // sent last
	held    bool          // the world has shown that this stream holds the node
}

func (p *play) start(ctx context.Context) error {
	p.w.Header().Set("Content-Type", "application/octet-stream")
	p.at = p.library.sceneAt(p.cursor)
	return p.full(ctx)
}

// full sends everything. Only so many streams do that at a time: together they
// would all be late, and keep the ledger from its turn.
func (p *play) full(ctx context.Context) error {
	release, err := p.turn(ctx, p.fullTurns, fullTurn)
	if err != nil {
		return err
	}
	defer release()
	n, _ := p.at.Node(p.request.Node)
	now := time.Now().UTC()
	var parts [][]byte
	if p.request.Compress && p.at.Class(n) != policy.Nobody {
		parts, err = p.library.full(p.at, n, now)
	} else {
		r := netmap.Full(p.at, n.ID)
		r.ControlTime = &now
		var m []byte
		m, err = p.news(r)
		parts = [][]byte{m}
	}
	if err != nil {
		return err
	}
	p.metrics.full.Inc()
	return p.write(parts...)
}

// turn waits for one of the turns that there are. It is given back by release,
// or after a while, so that slow readers do not hold up others.
func (p *play) turn(ctx context.Context, turns chan struct{}, limit time.Duration) (release func(), err error) {
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.session.end:
		return nil, fmt.Errorf("%w: a newer stream took over", ErrBroken)
	}
	give := sync.OnceFunc(func() { <-turns })
	late := time.AfterFunc(limit, give)
	return func() {
		late.Stop()
		give()
	}, nil
}

// advance moves to the newest world and says what the viewer must hear of it.
func (p *play) advance(ctx context.Context) (sent, over bool, err error) {
	release, err := p.turn(ctx, p.turns, turn)
	if err != nil {
		return false, false, err
	}
	defer release()
	from := p.at
	touched := p.cursor.Skip()
	p.at = p.library.sceneAt(p.cursor)
	before, _ := from.Node(p.request.Node)
	after, ok := p.at.Node(p.request.Node)
	switch {
	case !ok:
		return true, true, p.send(netmap.Farewell(from, before, p.at.At))
	case after.NodeKey != p.request.NodeKey || p.supersededBy(after.Presence):
		return false, true, nil
	case !from.SameNames(p.at.Settings) && p.at.Class(after) != policy.Nobody && p.at.NodeCount() > 1:
		release()
		if dropped := netmap.Dropped(from, p.at, before, after); dropped != nil {
			if err := p.send(dropped); err != nil {
				return false, false, err
			}
		}
		return true, false, p.full(ctx)
	}
	b := p.library.bulletin(from, p.at, from.Viewpoint(before), p.at.Viewpoint(after), touched)
	if b.err != nil {
		return false, false, b.err
	}
	if p.request.Compress && b.tells(from, p.at, before, after) {
		return p.tellShared(b, after.ID)
	}
	r := netmap.Personal(from, p.at, after.ID, b.response)
	if r == nil {
		return p.tell(nil)
	}
	m, err := p.news(r)
	if err != nil {
		return false, false, err
	}
	return p.tell(m)
}

// tellShared sends what all viewers with one viewpoint are sent.
func (p *play) tellShared(b *bulletin, viewer mesh.NodeID) (sent, over bool, err error) {
	r := b.correction(viewer)
	if r == nil {
		return p.tell(b.message)
	}
	m, err := p.news(r)
	if err != nil {
		return false, false, err
	}
	return p.tell(b.message, m)
}

// tell sends messages, if there are any.
func (p *play) tell(messages ...[]byte) (sent, over bool, err error) {
	if messages[0] == nil {
		p.session.rev.Store(int64(p.at.Rev))
		return false, false, nil
	}
	p.metrics.delta.Inc()
	return true, false, p.write(messages...)
}

// supersededBy reports whether another stream took the node over: another
// replica says so after the world had shown that this one holds it.
func (p *play) supersededBy(now mesh.Presence) bool {
	mine := now.Replica == string(p.ledger.Self().ID) && now.Conn == p.session.conn
	p.held = p.held || mine
	return p.held && now.Online && !mine
}

func (p *play) keepAlive() error {
	p.metrics.alive.Inc()
	return p.write(p.silence())
}

// silence is the keep-alive in the form of this stream.
func (p *play) silence() []byte {
	if p.request.Compress {
		return p.library.alive
	}
	return p.plainAlive
}

func (p *play) news(r *netmap.Response) ([]byte, error) {
	return news(r, p.silence(), p.request.Compress)
}

func (p *play) send(r *netmap.Response) error {
	m, err := p.news(r)
	if err != nil {
		return err
	}
	return p.write(m)
}

// write sends the parts of one message.
func (p *play) write(parts ...[]byte) error {
	defer p.session.blocked.Store(0)
	for _, part := range parts {
		p.session.blocked.Store(time.Now().UnixNano())
		if _, err := p.w.Write(part); err != nil {
			return fmt.Errorf("%w: node %d: %w", ErrBroken, p.request.Node, err)
		}
		p.metrics.bytes.Add(float64(len(part)))
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("%w: node %d: %w", ErrBroken, p.request.Node, err)
	}
	p.session.rev.Store(int64(p.at.Rev))
	return nil
}
