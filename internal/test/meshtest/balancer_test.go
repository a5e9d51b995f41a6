package meshtest

import (
	"io"
	"net"
	"testing"
	"time"
)

// greeter sends its name on every connection, and then echoes what it receives.
func greeter(t *testing.T, name string) net.Listener {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, name)
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l
}

func read(t *testing.T, conn net.Conn, size int) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBalancerTakesTurnsAndSkipsTheDead(t *testing.T) {
	a, b := greeter(t, "a"), greeter(t, "b")
	balancer := NewBalancer(t, a.Addr().String(), b.Addr().String())
	dial := func() net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", balancer.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	visit := func(count int) (names string) {
		for range count {
			names += read(t, dial(), 1)
		}
		return names
	}
	if got := visit(4); got != "abab" {
		t.Errorf("four connections go to %s", got)
	}
	a.Close()
	if got := visit(3); got != "bbb" {
		t.Errorf("without a, connections go to %s", got)
	}
	conn := dial()
	read(t, conn, 1)
	balancer.Remove(b.Addr().String())
	if _, err := io.WriteString(conn, "still"); err != nil || read(t, conn, 5) != "still" {
		t.Errorf("a connection does not outlive the removal of its backend: %v", err)
	}
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("without a backend there is an answer")
	}
}

func TestFrozenBalancerLetsNothingPassAndLosesNothing(t *testing.T) {
	balancer := NewBalancer(t, greeter(t, "a").Addr().String())
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", balancer.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read(t, conn, 1)
	balancer.Freeze()
	if _, err := io.WriteString(conn, "late"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes pass", n)
	}
	balancer.Thaw()
	if got := read(t, conn, 4); got != "late" {
		t.Errorf("%q passes after the thaw", got)
	}
}
