package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

// ParseHost shows what is understood of a host description.
func ParseHost(raw []byte) (h control.Host, tags []string, homeRelay int, latency float64) {
	d := parseHost(raw)
	return d.Host, d.tags, d.homeRelay, d.latency
}

// Decoded shows what is understood of a request, as both kinds.
func Decoded(machine key.MachinePublic, body string) (j control.Joining, r control.Report, ok bool) {
	read := func(v any) bool {
		return decode(httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body)), v)
	}
	var register registerRequest
	if ok = read(&register); ok {
		j = register.joining(peer{machine: machine})
	}
	var update mapRequest
	if read(&update) {
		r, _ = update.report(peer{machine: machine})
	}
	return j, r, ok
}

// HandshakesAtOnce is how many are computed at once.
const HandshakesAtOnce = handshakesAtOnce

// TakeTurn waits for a turn to compute a handshake.
func TakeTurn(ctx context.Context, s *Server, network string) (done func(), err error) {
	return s.turns.take(ctx, network)
}

// NetworksWithTurns counts those that have a turn or wait for one.
func NetworksWithTurns(s *Server) int {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return len(s.turns.of)
}

// StrangersHold bounds the memory for the bodies of unknown machines.
const StrangersHold = strangersMemory

// Bodies counts that memory.
type Bodies struct{ bodies }

// Take asks for n more bytes for a network.
func (b *Bodies) Take(network string, n int) bool { return b.take(network, n) }

// Give returns n bytes of a network.
func (b *Bodies) Give(network string, n int) { b.give(network, n) }

// BodiesHeld is how much memory a server holds for unknown machines, and for how
// many networks.
func BodiesHeld(s *Server) (bytes, networks int) {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	return s.bodies.held, len(s.bodies.of)
}

// ProvenMachines counts the machines with connections that have authenticated.
func ProvenMachines(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.proven)
}
