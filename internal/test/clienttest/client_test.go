//go:build !race

package clienttest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stun"
	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"
)

var allClients = flag.Bool("all-clients", false, "build and try all versions of the client, not only the oldest and the newest")

func TestClientsAreWhatTheySay(t *testing.T) {
	versions := []string{Oldest, Newest}
	if *allClients {
		versions = Versions()
	}
	for _, version := range versions {
		out, err := exec.CommandContext(t.Context(), filepath.Join(Build(t, version), "tailscale"), "version").Output()
		if first, _, _ := strings.Cut(string(out), "\n"); err != nil || "v"+first != version {
			t.Errorf("the client %s says %s, %v", version, out, err)
		}
	}
}

// startServer starts the vendor's own test server, a relay and STUN at an address, in a namespace or, without
// one, on this host.
func startServer(t *testing.T, n *Namespace, ip string) (url string) {
	t.Helper()
	listen, listenPacket := new(net.ListenConfig).Listen, new(net.ListenConfig).ListenPacket
	if n != nil {
		listen, listenPacket = n.Listen, n.ListenPacket
	}
	l, err := listen(t.Context(), "tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := listenPacket(t.Context(), "udp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	go answerSTUN(packets)
	relay := derpserver.New(key.NewNode(), logger.Discard)
	t.Cleanup(func() { relay.Close() })
	control := &testcontrol.Server{
		Logf: logger.Discard, AllOnline: true, ExplicitBaseURL: "http://" + l.Addr().String(),
		DERPMap: &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{1: {RegionID: 1, RegionCode: "lab", Nodes: []*tailcfg.DERPNode{{
			Name: "1a", RegionID: 1, HostName: ip, IPv4: ip, IPv6: "none", InsecureForTests: true,
			DERPPort: l.Addr().(*net.TCPAddr).Port, STUNPort: packets.LocalAddr().(*net.UDPAddr).Port,
		}}}}},
	}
	mux := http.NewServeMux()
	mux.Handle("/", control)
	mux.Handle("/derp", derpserver.Handler(relay))
	mux.HandleFunc("/derp/", derpserver.ProbeHandler)
	mux.HandleFunc("/generate_204", derpserver.ServeNoContent)
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return control.ExplicitBaseURL
}

func answerSTUN(packets net.PacketConn) {
	for buf := make([]byte, 1500); ; {
		size, from, err := packets.ReadFrom(buf)
		if err != nil {
			return
		}
		if id, err := stun.ParseBindingRequest(buf[:size]); err == nil {
			_, _ = packets.WriteTo(stun.Response(id, from.(*net.UDPAddr).AddrPort()), from)
		}
	}
}

// serveEcho sends back what it receives on every connection, until the test ends.
func serveEcho(t *testing.T, l net.Listener) (port int) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func checkEcho(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(conn, text); written <- err }()
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	if err := errors.Join(err, <-written); err != nil || string(got) != text {
		t.Fatalf("%d bytes came back as others, %v", len(text), err)
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestClientsWithoutDeviceJoinAndReachEachOther(t *testing.T) {
	ctx := limited(t)
	url := startServer(t, nil, "127.0.0.1")
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := serveEcho(t, l)
	first, second := Start(t, Options{Version: Oldest}), Start(t, Options{})
	if err := first.WaitState(ctx, "NeedsLogin"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Daemon{first, second} {
		if err := d.Up(ctx, url, "key"); err != nil {
			t.Fatal(err)
		}
	}
	ips, err := second.IPs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Connections to a peer that the client does not know yet are refused.
	dial := func() (conn net.Conn) {
		err := poll(ctx, func() (err error) { conn, err = first.Dial(ctx, fmt.Sprintf("%s:%d", ips[0], port)); return err })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	checkEcho(t, dial(), strings.Repeat("over the mesh ", 10_000))

	process := first.Process()
	before, err := first.IPs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(os.Interrupt); err == nil {
		t.Error("the daemon runs on after a restart")
	}
	if err := first.WaitState(ctx, "Running"); err != nil {
		t.Fatal(err)
	}
	if after, err := first.IPs(ctx); err != nil || after[0] != before[0] {
		t.Errorf("after a restart the addresses are %v, %v, not %v", after, err, before)
	}
	checkEcho(t, dial(), "after a restart")
}

func TestCommandTellsWhatItPrintedAndItsCode(t *testing.T) {
	d := Start(t, Options{})
	if stdout, _, code := d.CLI(t.Context(), "version"); code != 0 || !strings.HasPrefix(stdout, Newest[1:]) {
		t.Errorf("version prints %q with code %d", stdout, code)
	}
	if _, stderr, code := d.CLI(t.Context(), "no-such-command"); code != 1 || stderr == "" {
		t.Errorf("an unknown command prints %q with code %d", stderr, code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := d.WaitState(ctx, "Running"); err == nil || !strings.Contains(err.Error(), `"BackendState": "NeedsLogin"`) {
		t.Errorf("a state that does not come is told as %v", err)
	}
	if _, err := d.IPs(t.Context()); err == nil {
		t.Error("a logged out client has an address")
	}
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	if _, stderr, code := d.CLI(t.Context(), "status"); code == 0 || stderr == "" {
		t.Errorf("without its daemon a command prints %q with code %d", stderr, code)
	}
}

func TestClientsWithDevicesTalkDirectlyThenThroughTheRelay(t *testing.T) {
	ctx := limited(t)
	lab := NewLab(t)
	server := lab.Add("server")
	url := startServer(t, server, server.Addr.String())
	hosts := []*Namespace{lab.Add("n1"), lab.Add("n2")}
	clients := []*Daemon{Start(t, Options{Namespace: hosts[0]}), Start(t, Options{Namespace: hosts[1]})}
	for _, d := range clients {
		if err := d.Up(ctx, url, "key"); err != nil {
			t.Fatal(err)
		}
	}
	ips, err := clients[1].IPs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := hosts[1].Listen(ctx, "tcp", ips[0].String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	target := fmt.Sprintf("%s:%d", ips[0], serveEcho(t, l))
	if stdout, stderr, code := clients[0].CLI(ctx, "ping", "--until-direct", "--c=20", ips[0].String()); code != 0 || !strings.Contains(stdout, "via "+hosts[1].Addr.String()) {
		t.Fatalf("no direct path: %s%s", stdout, stderr)
	}
	conn, err := hosts[0].DialContext(ctx, "tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	checkEcho(t, conn, strings.Repeat("directly ", 10_000))

	lab.BlockUDP(hosts[0], hosts[1])
	checkEcho(t, conn, strings.Repeat("through the relay ", 10_000))
	err = poll(ctx, func() error {
		if stdout, stderr, _ := clients[0].CLI(ctx, "ping", "--until-direct=false", "--c=1", ips[0].String()); !strings.Contains(stdout, "via DERP(lab)") {
			return fmt.Errorf("not through the relay: %s%s", stdout, stderr)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
