package guard

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tellEvery = time.Minute
	// problemFor is how long /health keeps reporting a problem that is over.
	problemFor = time.Minute
)

// Listener wraps l so that its connections are counted and limited.
func (g *Guard) Listener(l net.Listener) net.Listener { return listener{watched{l, g}} }

// Watch wraps l so that its errors are reported, without limiting connections.
func (g *Guard) Watch(l net.Listener) net.Listener { return watched{l, g} }

type watched struct {
	net.Listener
	guard *Guard
}

// Accept implements net.Listener.
func (l watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		l.guard.outOfFiles(err)
	}
	return c, err
}

type listener struct{ watched }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.watched.Accept()
	if err != nil {
		return nil, err
	}
	return l.guard.enter(c), nil
}

// outOfFiles records that file descriptors have run out, and frees one.
func (g *Guard) outOfFiles(err error) {
	g.failures.Inc()
	g.mu.Lock()
	now := time.Now()
	tell := now.Sub(g.exhausted) >= tellEvery
	if tell {
		g.exhausted = now
	}
	var oldest *Conn
	if front := g.unproven.Front(); front != nil {
		oldest = front.Value.(*Conn)
	}
	g.mu.Unlock()
	if tell {
		g.config.Log.Error("out of file descriptors, cannot accept connections", "error", err, "remedy", "raise LimitNOFILE or ulimit -n, or add a replica")
	}
	g.drop(oldest, overFiles)
}

// Problem returns what /health reports about connections, empty if there is no
// problem, and whether connections could not be accepted at all.
func (g *Guard) Problem() (text string, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.exhausted.IsZero() && time.Since(g.exhausted) < tellEvery+problemFor {
		return "out of file descriptors: connections could not be accepted. Raise LimitNOFILE or ulimit -n, or add a replica", true
	}
	if !g.dropped.IsZero() && time.Since(g.dropped) < problemFor {
		return fmt.Sprintf("%d unauthenticated connections are open and a limit was reached: those that have been idle longest are closed to make room for new ones; see https://github.com/fairlead-mesh/fairlead/blob/main/docs/troubleshooting.md", g.unproven.Len()), false
	}
	return "", false
}

// Expected memory of one unauthenticated connection. Measured with 5,000 of them, as growth of the resident
// memory per connection: 8 KiB for one that sends nothing, 20 KiB after the Noise handshake, 23 KiB after a
// request, 34 KiB with an incomplete request header of the largest size. With TLS it is 27 to 42 KiB, and 65
// KiB with such a header.
const (
	perPlain = 32 << 10
	perTLS   = 64 << 10
)

// Limits returns the defaults for a number of file descriptors and bytes of memory: how many connections may
// be open, and how many of them may be unauthenticated. Those may use half of the memory. withTLS means that
// this process terminates TLS.
func Limits(files int, memory int64, withTLS bool) (open, unproven int) {
	const (
		leastReserve, mostReserve   = 64, 1024
		leastUnproven, mostUnproven = 1000, 20_000
	)
	each := int64(perPlain)
	if withTLS {
		each = perTLS
	}
	reserve := min(max(files/10, leastReserve), mostReserve)
	open = max(files-reserve, 8)
	return open, min(open, int(min(max(memory/2/each, leastUnproven), mostUnproven)))
}

// PerNetwork returns how many unauthenticated connections one network may have: the configured number, but
// at least 2,000 are left for everybody else, or half of the total if that is below 4,000.
func PerNetwork(asked, unproven int) int {
	const others = 2000
	return max(min(asked, unproven-min(unproven/2, others)), 1)
}

// Files returns how many file descriptors this process may have open.
func Files() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}
