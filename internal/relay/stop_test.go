package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tailscale.com/net/stun"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// This test must not run in parallel with others: it would find their goroutines.
func TestStopLeavesNobodyBehind(t *testing.T) {
	undecided := key.NewNode()
	r := start(t, relay.ServerConfig{STUNListenAddr: "127.0.0.1:0", Verify: func(ctx context.Context, k key.NodePublic) bool {
		if k == undecided.Public() {
			<-ctx.Done()
		}
		return true
	}})
	ka, kb := key.NewNode(), key.NewNode()
	a, b := connected(t, r.url, ka), connected(t, r.url, kb)
	if err := a.Send(kb.Public(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	packet(t, b)
	web := webSocketClient(t, r, key.NewNode())
	if _, err := web.Recv(); err != nil {
		t.Fatal(err)
	}
	_, silent := upgrade(t, r, "") // this client sends nothing
	waiting, _ := upgrade(t, r, "")
	if _, err := waiting.Write(clientInfo(undecided.Public(), undecided.SealTo(r.key.Public(), []byte("{}")))); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the stop took %v", took)
	}
	relays := regexp.MustCompile(`derpserver|internal/relay\.`)
	eventually(t, func() error { // a handler returns shortly after it reports that it is done
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		_, others, _ := strings.Cut(string(stacks), "\n\n") // the first stack is our own
		for stack := range strings.SplitSeq(others, "\n\n") {
			if relays.MatchString(stack) {
				return errors.New(stack)
			}
		}
		return nil
	})
	if _, err := a.Recv(); err == nil {
		t.Error("a client is still connected")
	}
	if _, err := web.Recv(); err == nil {
		t.Error("a WebSocket client is still connected")
	}
	if rest, err := io.ReadAll(silent); err != nil || !bytes.Equal(rest, serverKey(r)) {
		t.Errorf("a silent client received %q, %v", rest, err)
	}
	if err := served(t, client(t, r.url, ka)); err == nil {
		t.Error("a client is served after the stop")
	}
}

func TestTakenSTUNPortFailsTheStart(t *testing.T) {
	taken, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.LocalAddr().String()
	for addr, want := range map[string]string{
		addr:               "address already in use: derp.server.stun_listen_addr " + addr,
		"203.0.113.1:3478": "derp.server.stun_listen_addr 203.0.113.1:3478: ",
	} {
		if err := newServer(t, addr).Listen(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSTUNTellsTheAddressOfClientsOnly(t *testing.T) {
	for listen, dial := range map[string]string{"127.0.0.1": "127.0.0.1", "[::]": "127.0.0.1", "[::1]": "[::1]"} {
		addr := listen + ":" + porttest.Port(t)
		start(t, relay.ServerConfig{STUNListenAddr: addr})
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", dial+addr[strings.LastIndex(addr, ":"):])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		id := stun.NewTxID()
		request := stun.Request(id)
		for _, sent := range [][]byte{{}, []byte("hello"), request[:20], append([]byte{1}, request[1:]...), request} {
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		answer := make([]byte, 1500)
		n, err := conn.Read(answer) // the malformed datagrams get no response, so the first response is to the last datagram
		if err != nil {
			t.Fatal(err)
		}
		gotID, got, err := stun.ParseResponse(answer[:n])
		if want := netip.MustParseAddrPort(conn.LocalAddr().String()); err != nil || gotID != id || got != want {
			t.Errorf("%s: %v, %v, want %v", listen, got, err, want)
		}
		if n > len(request)+8 {
			t.Errorf("%d bytes answer %d", n, len(request))
		}
	}
}
