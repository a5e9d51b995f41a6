package app_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hold opens a connection, sends the text and leaves the connection open.
func hold(t *testing.T, network, address, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	hostAndLength = " HTTP/1.1\r\nHost: fairlead\r\nContent-Length: 1000\r\n\r\n{"
	enough        = 10 * time.Second // far less than the request timeout
)

func TestRefusedRequestDoesNotKeepItsConnection(t *testing.T) {
	s := run(t, settings(t))
	cases := []struct{ network, address, request, status string }{
		{"tcp", s.API, "POST /api/v1/user", "401"},
		{"tcp", s.API, "POST /nothing", "404"},
		{"tcp", s.API, "PUT /health", "405"},
		{"tcp", s.API, "GET /health", "200"},
		{"unix", s.Socket, "PUT /api/v1/user", "405"},
		{"tcp", s.Metrics, "POST /metrics", "405"},
		{"tcp", s.Metrics, "GET /metrics", "200"},
	}
	begin, conns := time.Now(), make([]net.Conn, len(cases))
	for i, c := range cases {
		conns[i] = hold(t, c.network, c.address, c.request+hostAndLength)
	}
	for i, c := range cases {
		got, err := io.ReadAll(conns[i])
		if err != nil && !errors.Is(err, syscall.ECONNRESET) || !bytes.HasPrefix(got, []byte("HTTP/1.1 "+c.status)) || !bytes.Contains(got, []byte("Connection: close")) {
			t.Errorf("%s: %v: %s", c.request, err, got)
		}
		if took := time.Since(begin); took > enough {
			t.Errorf("%s: the connection ended after %v", c.request, took)
		}
	}
	s.stop(t)
}

func TestStrangersDoNotDelayAStop(t *testing.T) {
	s := run(t, settings(t))
	hold(t, "tcp", s.API, "POST /api/v1/user"+hostAndLength)
	hold(t, "tcp", s.API, "POST /api/v1/machine"+hostAndLength)
	hold(t, "tcp", s.Metrics, "POST /metrics"+hostAndLength)
	for _, request := range []string{"/api/v1/openapi.yaml", "/api/v1/user"} {
		c := hold(t, "tcp", s.API, "")
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		// The unread responses fill all buffers, and then writes block.
		if _, err := io.WriteString(c, strings.Repeat("GET "+request+" HTTP/1.1\r\nHost: fairlead\r\n\r\n", 1<<20)); err == nil {
			t.Fatal("all was read")
		}
	}
	begin := time.Now()
	s.stop(t)
	if took := time.Since(begin); took > enough {
		t.Errorf("it stopped after %v", took)
	}
}
