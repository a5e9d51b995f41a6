package wire

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"tailscale.com/control/controlbase"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

// ParseHost returns the parts of a host description that the server understands.
func ParseHost(raw []byte) (h control.Host, tags []string, homeRelay int, latency float64) {
	d := parseHost(raw)
	return d.Host, d.tags, d.homeRelay, d.latency
}

// Decoded decodes a body both as a registration and as a map request.
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

// NoiseOver makes a connection to a client as the server does, without HTTP.
func NoiseOver(ctx context.Context, conn net.Conn, private key.MachinePrivate) (net.Conn, error) {
	below := &lazyConn{Conn: conn}
	noise, err := controlbase.Server(ctx, below, private, nil)
	return noiseConn{noise, below, &sync.Pool{New: newRecords}}, err
}

// HandshakesAtOnce is the number of handshakes computed concurrently.
const HandshakesAtOnce = handshakesAtOnce

// TakeTurn waits for a turn to compute a handshake.
func TakeTurn(ctx context.Context, s *Server, network string) (done func(), err error) {
	return s.turns.take(ctx, network)
}

// NetworksWithTurns returns the number of networks that have a turn or wait for one.
func NetworksWithTurns(s *Server) int {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return len(s.turns.of)
}

// StrangersHold limits the memory for request bodies of unknown machines.
const StrangersHold = strangersMemory

// Bodies accounts for that memory.
type Bodies struct{ bodies }

// Take reserves n more bytes for a network and reports whether they were available.
func (b *Bodies) Take(network string, n int) bool { return b.take(network, n) }

// Give releases n bytes of a network.
func (b *Bodies) Give(network string, n int) { b.give(network, n) }

// BodiesHeld returns how much memory a server holds for the bodies of unknown
// machines, and for how many networks.
func BodiesHeld(s *Server) (bytes, networks int) {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	return s.bodies.held, len(s.bodies.of)
}

// ProvenMachines returns the number of machines with authenticated connections.
func ProvenMachines(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.proven)
}
