package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

// FuzzRelayUpgrade: whatever a stranger sends to the relay, the connection ends once
// the stranger has finished sending.
func FuzzRelayUpgrade(f *testing.F) {
	r := start(f, relay.ServerConfig{Verify: func(context.Context, key.NodePublic) bool { return false }})
	f.Add("DERP", "", false, []byte{})
	f.Add("DERP", "", true, []byte("\x02\x00\x00\x00\x30"))
	f.Add("DERP", "", true, []byte("\x02\xff\xff\xff\xff"+strings.Repeat("a", 100)))
	f.Add("websocket", "derp", false, []byte("\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00"))
	f.Add("websocket", "", false, []byte("\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00"))
	f.Add("websocket", "derp", false, []byte("\x82\x85\x00\x00\x00\x00\x02\x00\x00\x00\x30"))
	f.Fuzz(func(t *testing.T, protocol, subprotocol string, fast bool, rest []byte) {
		from := net.IPv4(127, byte(1+rand.N(250)), byte(rand.N(256)), byte(1+rand.N(250)))
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		conn, err := d.DialContext(t.Context(), "tcp", r.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		start := 0
		if fast {
			start = 1
		}
		fmt.Fprintf(conn, "GET /derp HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\nDerp-Fast-Start: %d\r\n\r\n",
			printable(protocol), printable(subprotocol), start)
		_, _ = conn.Write(rest) // the server may have closed the connection already
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the relay keeps a connection whose peer is gone")
		}
		if text := r.log.String(); strings.Contains(text, "panic") {
			t.Fatal(text)
		}
	})
}

// printable drops characters that would end a header line.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, text)
}
