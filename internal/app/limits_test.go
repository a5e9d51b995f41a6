package app_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Strangers that open as many connections as they can affect neither the health check nor
// the local socket nor the metrics.
func TestHealthAnswersWhileStrangersHoldTheirShare(t *testing.T) {
	s := run(t, settings(t, "FAIRLEAD_LIMITS_CONNECTIONS=50"))
	for i := range 200 {
		text := ""
		if i%2 == 0 {
			text = "GET /ts2021 HTTP/1.1\r\nHost: a\r\n" // an unfinished request
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.API)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte(text)) // the server may have closed the connection already
	}
	eventually(t, func() error {
		if status, text := fetch(t, "tcp", s.API, "/health"); status != 200 || !strings.Contains(text, "unauthenticated connections are open") {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	if status, text := fetch(t, "unix", s.Socket, "/api/v1/user"); status != 200 {
		t.Errorf("the local socket: %d %s", status, text)
	}
	if _, text := fetch(t, "tcp", s.Metrics, "/metrics"); !strings.Contains(text, `mesh_health_warnings{check="connections"} 1`) ||
		!strings.Contains(text, "mesh_unauthenticated_connections_limit 50") {
		t.Error(text)
	}
	begin := time.Now()
	s.stop(t)
	if took := time.Since(begin); took > enough {
		t.Errorf("it stopped after %v", took)
	}
}

// The memory of an unauthenticated connection is bounded, even while it sends headers.
func TestLongHeadersAreRefused(t *testing.T) {
	s := run(t, settings(t))
	for length, want := range map[int]string{15 << 10: "HTTP/1.1 200", 24 << 10: "HTTP/1.1 431"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.API)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte("GET /health HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("a", length) + "\r\n\r\n")) // checked below
		answer := make([]byte, len(want))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != want {
			t.Errorf("%d bytes: %q, %v; want %s", length, answer, err, want)
		}
	}
}
