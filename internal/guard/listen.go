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
	// problemFor is how long /health still reports a problem that is over.
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
		l.guard.ranOut(err)
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

// ranOut reports that file descriptors ran out, and frees one.
func (g *Guard) ranOut(err error) {
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
		g.config.Log.Error("file descriptors ran out: connections cannot be accepted", "error", err, "remedy", "raise LimitNOFILE or ulimit -n, or add a replica")
	}
	g.drop(oldest, overFiles)
}

// Problem returns what /health reports about connections, empty if there is no
// problem, and whether connections could not be accepted at all.
func (g *Guard) Problem() (text string, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.exhausted.IsZero() && time.Since(g.exhausted) < tellEvery+problemFor {
		return "file descriptors ran out, and connections could not be accepted: raise LimitNOFILE or ulimit -n, or add a replica", true
	}
	if !g.dropped.IsZero() && time.Since(g.dropped) < problemFor {
		return fmt.Sprintf("%d unauthenticated connections are open and a limit was reached: those idle longest are closed to make room for new ones; see docs/troubleshooting.md", g.unproven.Len()), false
	}
	return "", false
}

// Limits are the defaults that file descriptors and bytes of memory allow: how
// many connections may be open, and how many that have not authenticated.
func Limits(files int, memory int64) (open, unproven int) {
	const (
		leastReserve, mostReserve   = 64, 1024
		leastUnproven, mostUnproven = 1000, 20_000
		// A stranger that has done the handshake and asks nothing holds up to
		// 32 KiB. All of them may hold a quarter of the memory.
		perMemory = 4 * 32 << 10
	)
	reserve := min(max(files/10, leastReserve), mostReserve)
	open = max(files-reserve, 8)
	return open, min(open, int(min(max(memory/perMemory, leastUnproven), mostUnproven)))
}

// OfOne is how many connections that have not authenticated one network may
// have: what was asked for, but never more than half of all, so that the other
// half is left for everybody else.
func OfOne(asked, unproven int) int { return max(min(asked, unproven/2), 1) }

// Files is how many file descriptors this process may have.
func Files() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}
