package guard_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// server responds to /health for everyone; a request for /prove authenticates its
// connection.
type server struct {
	t     *testing.T
	guard *guard.Guard
	addr  string
	reg   *prometheus.Registry
	log   *waittest.Transcript
}

func serve(t *testing.T, c guard.Config) *server {
	t.Helper()
	s := &server{t: t, reg: prometheus.NewRegistry(), log: &waittest.Transcript{}}
	c.Log, c.Registerer = slog.New(slog.NewTextHandler(s.log, nil)), s.reg
	s.guard = guard.New(c)
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/prove", func(w http.ResponseWriter, r *http.Request) { guard.Prove(r.Context()) })
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	h := &http.Server{
		Handler: s.guard.Handler(mux), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return guard.WithConn(ctx, c) },
	}
	var loop sync.WaitGroup
	loop.Go(func() { _ = h.Serve(s.guard.Listener(l)) })
	t.Cleanup(func() { h.Close(); loop.Wait() })
	return s
}

// conn opens a connection and requests the paths on it, on behalf of an address.
func (s *server) conn(forwarded string, paths ...string) net.Conn {
	s.t.Helper()
	c, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	for _, path := range paths {
		if err := ask(c, forwarded, path); err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
	}
	return c
}

func ask(c net.Conn, forwarded, path string) error {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: "+forwarded+"\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// closed reports whether the server closes a connection within 20 seconds.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// alive reports whether a connection still responds.
func alive(c net.Conn) bool { return ask(c, "192.0.2.250", "/health") == nil }

func (s *server) metric(name, label string) (v float64) {
	s.t.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				v += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return v
}

func TestNewConnectionsAreServedWhileStrangersHoldTheirShare(t *testing.T) {
	for name, c := range map[string]guard.Config{
		"total":   {Unproven: 20, UnprovenOfOne: 100, Open: 100},
		"network": {Unproven: 100, UnprovenOfOne: 20, Open: 100},
		"files":   {Unproven: 100, UnprovenOfOne: 100, Open: 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c)
			known := s.conn("", "/prove") // older and idle for longer than any stranger
			var strangers []net.Conn
			for range 60 {
				strangers = append(strangers, s.conn(""))
			}
			s.conn("", "/health")
			if !closed(strangers[0]) {
				t.Error("the oldest is open")
			}
			if !alive(known) {
				t.Error("a connection that had authenticated was closed")
			}
			if n, most := s.metric("mesh_unauthenticated_connections", ""), 21.0; n > most || n < 10 {
				t.Errorf("%v connections of strangers are open", n)
			}
			if s.metric("mesh_unauthenticated_connections_closed_total", name) < 40 {
				t.Error("the metric does not count them")
			}
			if text := s.log.String(); strings.Count(text, "\n") != 1 {
				t.Errorf("the log: %s", text)
			}
		})
	}
}

func TestForwardedAddressCountsBehindAProxy(t *testing.T) {
	s := serve(t, guard.Config{Unproven: 100, UnprovenOfOne: 3, Open: 100, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	other := s.conn("192.0.2.1", "/health")
	first := s.conn("192.0.2.2", "/health")
	for range 3 {
		s.conn("192.0.2.2", "/health")
	}
	if !closed(first) {
		t.Error("one address has more connections than it may have")
	}
	// When a proxy reuses a connection for another client, the authentication of the
	// first one does not count for the second.
	if !alive(other) {
		t.Error("another address lost its connection")
	}
	shared := s.conn("192.0.2.3", "/prove")
	if n := s.metric("mesh_unauthenticated_connections", ""); n != 4 {
		t.Errorf("%v are counted", n)
	}
	if err := ask(shared, "192.0.2.4", "/health"); err != nil {
		t.Fatal(err)
	}
	if n := s.metric("mesh_unauthenticated_connections", ""); n != 5 {
		t.Errorf("%v are counted", n)
	}
}

// This test exhausts the file descriptors of this process for real.
func TestRunningOutOfDescriptorsIsReportedAndRecovers(t *testing.T) {
	s := serve(t, guard.Config{Unproven: 1000, UnprovenOfOne: 1000, Open: 1000})
	idle := s.conn("", "/health")
	for range 3 { // closing one makes room for the next accept, which takes a descriptor first
		s.conn("", "/health")
	}
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: uint64(next.Fd()) + 1, Max: limit.Max}
	next.Close()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	// The last free descriptor is taken by our end of the connection.
	waiting := s.conn("")
	if !closed(idle) {
		t.Error("nobody made room")
	}
	if err := ask(waiting, "", "/health"); err != nil {
		t.Errorf("the connection was not accepted: %v", err)
	}
	if n := s.metric("mesh_accept_failures_total", ""); n == 0 {
		t.Error("not counted")
	}
	if text, failed := s.guard.Problem(); !failed || !strings.Contains(text, "LimitNOFILE") {
		t.Errorf("health: %q %v", text, failed)
	}
	if text := s.log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, syscall.EMFILE.Error()) {
		t.Errorf("the log: %s", text)
	}
}

func TestDefaultsLeaveDescriptorsAndAdmitManyNodes(t *testing.T) {
	for _, files := range []int{100, 1024, 20_000, 65_536, 1 << 30} {
		open, unproven := guard.Limits(files, math.MaxInt64, true)
		if files-open < 64 || unproven > open {
			t.Errorf("%d descriptors: %d connections, %d of strangers", files, open, unproven)
		}
		if files >= 20_000 && guard.PerNetwork(6000, unproven) < 5000 {
			t.Errorf("%d descriptors: %d nodes of one network can come back at once", files, guard.PerNetwork(6000, unproven))
		}
	}
}

func TestDefaultsLeaveMemory(t *testing.T) {
	for mib, want := range map[int64][2]int{0: {1000, 1000}, 64: {1024, 1000}, 450: {7200, 3600}, 1024: {16_384, 8192}, 1 << 20: {20_000, 20_000}} {
		_, plain := guard.Limits(65_536, mib<<20, false)
		_, withTLS := guard.Limits(65_536, mib<<20, true)
		if got := [2]int{plain, withTLS}; got != want {
			t.Errorf("%d MiB: %d connections of strangers, want %d", mib, got, want)
		}
	}
	if _, unproven := guard.Limits(500, 64<<20, false); unproven > 436 {
		t.Errorf("more connections than descriptors: %d", unproven)
	}
}

func TestOneNetworkCannotHaveAllConnections(t *testing.T) {
	for _, c := range []struct{ asked, unproven, want int }{{6000, 922, 461}, {6000, 4000, 2000}, {6000, 7200, 5200}, {6000, 20_000, 6000}, {10, 922, 10}, {6000, 1, 1}} {
		if got := guard.PerNetwork(c.asked, c.unproven); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.asked, c.unproven, got, c.want)
		}
	}
}

func TestLeastMemoryLimitCounts(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const meminfo, none = "MemTotal:       4194304 kB\nMemFree:  17 kB\n", int64(math.MaxInt64)
	for name, c := range map[string]struct {
		root  fstest.MapFS
		limit int64 // GOMEMLIMIT
		want  int64
	}{
		"nothing known": {fstest.MapFS{}, none, none},
		"GOMEMLIMIT":    {fstest.MapFS{"proc/meminfo": file(meminfo)}, 450 << 20, 450 << 20},
		"machine":       {fstest.MapFS{"proc/meminfo": file(meminfo)}, none, 4 << 30},
		"version 2": {fstest.MapFS{
			"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n"),
		}, none, 512 << 20},
		"version 2, of a parent": {fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/fairlead.service\n"), "sys/fs/cgroup/system.slice/memory.max": file("1073741824\n"),
			"sys/fs/cgroup/system.slice/fairlead.service/memory.max": file("max\n"),
		}, none, 1 << 30},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu:/\n4:memory:/docker/abc\n0::/\n"), "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": file("536870912\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, none, 512 << 20},
		"version 1, path of the host": {fstest.MapFS{
			"proc/self/cgroup": file("4:memory:/docker/abc\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("536870912\n"),
		}, none, 512 << 20},
		"garbage": {fstest.MapFS{
			"proc/meminfo": file("MemTotal: x kB\n"), "proc/self/cgroup": file("0::/../..\nx\n"), "sys/fs/cgroup/memory.max": file("-1\n"),
		}, none, none},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(c.limit))
			if got := guard.Memory(c.root); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}
