package stream

import "github.com/fairlead-mesh/fairlead/internal/netmap"

// sample is a message that a stream sent: exactly the bytes that the device got, whether
// they are shared with other devices or not. It is verified after it was sent.
type sample struct {
	viewer   netmap.Viewer
	from, to *netmap.Scene // from is nil if the viewer had no map before
	sent     [][]byte
}

// maxSamples is how many samples wait to be verified. Each keeps two worlds alive.
const maxSamples = 2

// record is everything that a stream sent since it was at a scene.
type record struct {
	from *netmap.Scene
	sent [][]byte
	size int
}

// maxRecord is how many bytes a record may have. Beyond that, the stream begins another one.
const maxRecord = 4 << 20

func (r *record) add(messages [][]byte) {
	r.sent = append(r.sent, messages...)
	for _, m := range messages {
		r.size += len(m)
	}
}

// requestSamples turns the next full map of any stream into a sample, and lets an arbitrary
// stream record what it sends until the next request. The record becomes a sample, too. It
// also shows whether the stream was woken for everything that concerns it.
func (h *Hub) requestSamples() {
	h.sampleFull.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recorded != nil {
		h.recorded.record.Store(nil)
		h.recorded.wake()
		h.recorded = nil
	}
	for s := range h.running { // in random order
		s.record.Store(&record{})
		s.wake()
		h.recorded = s
		return
	}
}

// keepRecord begins or ends the record of an idle stream, as requested.
func (s *streamState) keepRecord() {
	old, want := s.record, s.session.record.Load()
	if old == want {
		return
	}
	at := s.rests(s.session)
	if at == nil {
		return // the stream is about to be woken again
	}
	if old != nil {
		s.offer(sample{viewer: s.viewer(), from: old.from, to: at, sent: old.sent})
	}
	if s.record = want; want != nil {
		want.from = at
	}
}

// offer passes a sample to Run. It does not wait.
func (h *Hub) offer(s sample) {
	select {
	case h.samples <- s:
	default:
	}
}

// verify compares a sample with a full map that is rendered without any cache.
func (h *Hub) verify(s sample) {
	h.metrics.checks.Inc()
	diff := netmap.Verify(s.from, s.to, s.viewer, s.sent)
	if diff == "" {
		return
	}
	h.metrics.violations.Inc()
	args := []any{"node", s.viewer.Node, "to", s.to.Rev, "difference", diff}
	if s.from != nil {
		args = append(args, "from", s.from.Rev)
	}
	h.log.Error("wrong map sent to a node; please report this as a bug", args...)
}
