package porttest

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestPortIsFreeAndBelowTheRangeOfOutgoingConnections(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	outgoing, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 200 {
		port := Port(t)
		if n, err := strconv.Atoi(port); err != nil || n >= outgoing || seen[port] {
			t.Fatalf("port %s: already returned: %v; outgoing connections begin at %d", port, seen[port], outgoing)
		}
		seen[port] = true
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+port)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

func TestPortInUseIsNotFree(t *testing.T) {
	for network, listen := range map[string]func(addr string) (func() error, error){
		"tcp": func(addr string) (func() error, error) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
			if err != nil {
				return nil, err
			}
			return l.Close, nil
		},
		"udp": func(addr string) (func() error, error) {
			conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", addr)
			if err != nil {
				return nil, err
			}
			return conn.Close, nil
		},
	} {
		port := Port(t)
		closeIt, err := listen("127.0.0.1:" + port)
		if err != nil {
			t.Fatal(err)
		}
		if free(t.Context(), ":"+port) == nil {
			t.Errorf("a port with a listener for %s counts as free", network)
		}
		if err := closeIt(); err != nil {
			t.Fatal(err)
		}
		if err := free(t.Context(), ":"+port); err != nil {
			t.Error(err)
		}
	}
}

func TestReleasedPortCanBeReservedAgain(t *testing.T) {
	port, release, err := Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := "@fairlead-test-port-" + strconv.Itoa(port)
	if l, err := new(net.ListenConfig).Listen(t.Context(), "unix", name); err == nil {
		l.Close()
		t.Error("another process can reserve the same port")
	}
	release()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", name)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
