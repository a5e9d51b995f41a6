package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	maxStreams = 64
	// maxKeyStreams limits each API key and each person, so that none can use up all streams.
	maxKeyStreams = 8
	// localStreams are reserved for the local socket, where administrators diagnose problems.
	localStreams   = 8
	heartbeatEvery = 15 * time.Second
	// admitEvery is how often a stream checks whether its key is still valid. A revoked key must
	// stop working within 5 seconds, and other replicas need part of that time to learn of it.
	admitEvery   = time.Second
	writeTimeout = 10 * time.Second
	// readGap is the minimum time between two reads of the history: most commits have no
	// events, and under load there are hundreds a second.
	readGap = 50 * time.Millisecond
)

// events handles the stream of events.
type events struct {
	*core
	health  func() openapi.Health
	closed  func() bool
	cursor  func() *ledger.Cursor
	tail    *control.Tail[event]
	people  *control.Users
	keys    *control.APIKeys
	streams streams
}

// StreamEvents implements GET /api/v1/events.
func (s *events) StreamEvents(w http.ResponseWriter, r *http.Request, p openapi.StreamEventsParams) {
	st := &eventStream{events: s, w: w, rc: http.NewResponseController(w), actor: actor(r), session: session(r), pattern: r.Pattern}
	rev, err := s.place(r.Context(), st, p)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if !st.admitted() {
		unavailable(w, r, "this replica cannot read the latest changes; try again")
		return
	}
	if refusal := s.streams.enter(st.actor); refusal != "" {
		unavailable(w, r, refusal)
		return
	}
	defer s.streams.leave(st.actor)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // tells proxies such as nginx not to buffer
	w.Header().Set(revisionHeader, revision(rev))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if rec, ok := w.(*recorder); ok {
		rec.endless = true
	}
	_ = st.rc.SetReadDeadline(time.Time{}) // a connection on which it cannot be set has no deadline
	if err := st.run(r.Context()); err != nil {
		s.log.Debug("event stream ended", "actor", st.actor.String(), "req", st.actor.RequestID, "error", err)
	}
}

// streams counts the open event streams.
type streams struct {
	mu   sync.Mutex
	all  int            // guarded by mu
	used int            // guarded by mu; how many of them are not on the local socket
	keys map[string]int // guarded by mu; by kind and id of the actor, without zeros
}

// enter counts one more stream, or returns why it is refused.
func (c *streams) enter(a mesh.Actor) (refusal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open, most := c.all, maxStreams
	if a.Kind != mesh.ActorLocal {
		if open, most = c.used, maxStreams-localStreams; c.keys[streamOwner(a)] >= maxKeyStreams {
			return fmt.Sprintf("this API key already has %d event streams open on this replica, the maximum per key; close one, or use another replica", maxKeyStreams)
		}
	}
	if open >= most || c.all >= maxStreams {
		return fmt.Sprintf("this replica already serves %d event streams, the maximum; close one, or use another replica", most)
	}
	c.all++
	if a.Kind != mesh.ActorLocal {
		if c.keys == nil {
			c.keys = map[string]int{}
		}
		c.used++
		c.keys[streamOwner(a)]++
	}
	return ""
}

func (c *streams) leave(a mesh.Actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if a.Kind == mesh.ActorLocal {
		return
	}
	c.used--
	if c.keys[streamOwner(a)]--; c.keys[streamOwner(a)] == 0 {
		delete(c.keys, streamOwner(a))
	}
}

// streamOwner identifies an API key or a person.
func streamOwner(a mesh.Actor) string { return string(a.Kind) + ":" + a.ID }

func unavailable(w http.ResponseWriter, r *http.Request, detail string) {
	w.Header().Set("Retry-After", "2")
	writeProblem(w, r, problem(http.StatusServiceUnavailable, detail))
}

// place sets where a stream begins, and returns the revision at that point. A position that no
// replica has reached must come from another database, and one that an epoch skipped from changes that were lost, even if no
// replica that is left has seen them.
func (s *events) place(ctx context.Context, st *eventStream, p openapi.StreamEventsParams) (mesh.Revision, error) {
	name, text := "Last-Event-ID", or(p.LastEventID)
	if text == "" {
		name, text = "after", or(p.After)
	}
	if text == "" {
		rev := s.ledger.World().Rev
		st.after = history.EndOf(rev)
		return rev, nil
	}
	var err error
	if st.after, err = position(name, text); err != nil {
		return 0, err
	}
	if st.after.Rev > s.ledger.World().Rev {
		if err := s.ledger.Sync(ctx); err != nil {
			return 0, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
	}
	w := s.ledger.World()
	st.lost = st.after.Rev > w.Rev || w.Counters.Epoch.Skips(st.after.Rev)
	st.told = st.after
	return w.Rev, nil
}

// eventStream is one consumer of events.
type eventStream struct {
	events *events
	w      http.ResponseWriter
	rc     *http.ResponseController
	actor  mesh.Actor
	// session and pattern are the session that a person uses, and the operation.
	session mesh.SessionID
	pattern string
	after   history.Position // everything up to here was sent, or is not an event
	told    history.Position // the last id that the consumer was sent
	lost    bool             // after is not part of this history
}

// run sends events until the consumer disconnects or its key is no longer valid.
func (st *eventStream) run(ctx context.Context) error {
	admit, beat := time.NewTicker(admitEvery), time.NewTicker(heartbeatEvery)
	defer admit.Stop()
	defer beat.Stop()
	atOnce := make(chan struct{})
	close(atOnce)
	cursor := st.events.cursor()
	if err := st.write([]byte("retry: 1000\n\n" + st.mark())); err != nil {
		return err
	}
	for {
		more, looked := cursor.More(), time.Now()
		err := st.advance(ctx)
		if err != nil {
			return err
		}
		var rest <-chan struct{}
		if st.after.Compare(history.EndOf(cursor.World().Rev)) < 0 {
			rest = atOnce
		}
		select {
		case <-rest:
		case <-more:
			cursor.Skip()
			err = pause(ctx, readGap-time.Since(looked))
		case <-admit.C:
			if !st.admitted() {
				return errors.New("no longer authorized")
			}
		case <-beat.C:
			err = st.write([]byte(": heartbeat\n\n" + st.mark()))
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admitted reports whether the stream may continue: its key or session is valid, and this replica is
// current enough to know.
func (st *eventStream) admitted() bool {
	s := st.events
	if s.health().Status != openapi.HealthStatusPass {
		return false
	}
	if st.actor.Kind == mesh.ActorLocal {
		return true
	}
	if s.closed() {
		return false
	}
	snap, now, op := s.ledger.World().Snapshot, s.ledger.Now(), s.operations[st.pattern]
	if st.actor.Kind == mesh.ActorUser {
		v, ok := snap.Sessions.Get(st.session)
		u, known := snap.Users.Get(st.actor.User)
		return ok && known && !u.Suspended() && !v.Expiry.Reached(now) && s.people.Access(u).Allows(op.scope, op.role)
	}
	id, err := strconv.ParseInt(st.actor.ID, 10, 64)
	k, ok := snap.APIKeys.Get(mesh.KeyID(id))
	return err == nil && ok && !k.Expiry.Reached(now) && s.keys.Access(snap, k).Allows(op.scope, op.role)
}

// advance sends new events, not necessarily all of them.
func (st *eventStream) advance(ctx context.Context) (err error) {
	if st.lost {
		err = history.ErrForgotten
	}
	var events []event
	to := st.after
	if err == nil {
		events, to, err = st.events.tail.After(ctx, st.after)
	}
	if errors.Is(err, history.ErrForgotten) {
		rev := st.events.ledger.World().Rev
		st.after, st.lost = history.EndOf(rev), false
		st.told = st.after
		return st.write(resetText(st.after))
	}
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := st.send(e.text); err != nil {
			return err
		}
		st.told = e.at
	}
	st.after = to
	if len(events) == 0 {
		return nil
	}
	return st.flush()
}

// mark returns a new id to resume from, without an event, if changes that are not events
// followed the last one. Otherwise the consumer would keep the old id, which the history
// may no longer contain when it resumes.
func (st *eventStream) mark() string {
	if st.told == st.after {
		return ""
	}
	st.told = st.after
	return "id: " + st.after.String() + "\n\n"
}

func (st *eventStream) write(text []byte) error {
	return errors.Join(st.send(text), st.flush())
}

// send writes with a deadline for each event rather than for the whole stream.
func (st *eventStream) send(text []byte) error {
	_ = st.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // a connection that does not support deadlines does not block
	_, err := st.w.Write(text)
	return err
}

func (st *eventStream) flush() error {
	_ = st.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return st.rc.Flush()
}

// event is an encoded change with its position.
type event struct {
	at   history.Position
	text []byte
}

// resetText encodes a reset event. What follows it is complete from its revision on.
func resetText(at history.Position) []byte {
	return fmt.Appendf(nil, "id: %v\nevent: reset\ndata: {\"revision\":%q}\n\n", at, revision(at.Rev))
}

// eventOf encodes a change as a server-sent event. Lost changes are a reset: what the consumer knows may
// never have happened.
func eventOf(row history.AuditRow) event {
	if control.EventName(row) == control.EventReset {
		return event{row.Position, resetText(row.Position)}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %v\nevent: %s.%s\ndata: %s\n\n", row.Position, row.Kind, row.Verb, encoded(changeShape(row)))
	return event{row.Position, b.Bytes()}
}
