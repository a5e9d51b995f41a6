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

// requestSamples turns the next update of an arbitrary stream, and the next full map of
// any stream, into a sample.
func (h *Hub) requestSamples() {
	h.sampleFull.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.open { // in random order
		s.sample.Store(true)
		return
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
