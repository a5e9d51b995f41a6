package wire_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// unproven returns the number of connections that count as unauthenticated.
func (s *service) unproven() float64 {
	n, _ := s.metric("mesh_unauthenticated_connections")
	return n
}

func TestConnectionCountsUntilItsMachineIsKnown(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	if n := s.unproven(); n != 1 {
		t.Errorf("%v connections count before the node is known", n)
	}
	if status, _, _ := c.post("/machine/audit-log", "{}"); status != 200 || s.unproven() != 0 {
		t.Errorf("status %d, %v connections count", status, s.unproven())
	}
	// Replaying the first message of a known machine proves nothing.
	init, finish := s.initiation(c.machine)
	first, _ := s.handshake(base64.StdEncoding.EncodeToString(init))
	if _, err := finish(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, status := s.handshake(base64.StdEncoding.EncodeToString(init)); status != http.StatusSwitchingProtocols || s.unproven() != 2 {
		t.Errorf("status %d, %v connections count", status, s.unproven())
	}
	first.Close()
	until(t, "a connection that ended does not count", func() bool { return s.unproven() == 1 })
}

func TestUnknownMachinesMaySendLittle(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	body := func(size int) string { return `{"Version":142,"x":"` + strings.Repeat("x", size) + `"}` }
	if status, _, _ := c.post("/machine/map", body(17<<10)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("an unknown machine: %d", status)
	}
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	if status, _, _ := c.post("/machine/map", body(17<<10)); status != http.StatusNotFound {
		t.Errorf("a known machine: %d", status)
	}
}

func TestUnknownMachinesMayAskLittleAtOnce(t *testing.T) {
	s, _ := open(t, options{})
	c := s.client()
	statuses := make(chan int)
	var writers []*io.PipeWriter
	for range 10 {
		r, w := io.Pipe()
		writers = append(writers, w)
		go func() {
			res, err := c.ask(t.Context(), "POST", "/machine/feature/query", r)
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		}()
	}
	for range 6 {
		if status := <-statuses; status != http.StatusTooManyRequests {
			t.Errorf("status %d", status)
		}
	}
	for _, w := range writers {
		w.Close()
	}
	for range 4 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if status, _, _ := (&client{s: s, http: c.http, machine: key.NewMachine()}).post("/machine/feature/query", "{}"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

func TestUnknownMachinesOfOneNetworkLeaveRoomForOthers(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	const connections, each = 80, 4
	body := strings.Repeat("x", 8<<10+1) // reserves 16 KiB
	statuses := make(chan int, connections*each)
	var writers []*io.PipeWriter
	for range connections {
		c := s.client()
		for range each {
			r, w := io.Pipe()
			writers = append(writers, w)
			go func() { _, _ = io.WriteString(w, body) }() // returns when the request ends
			go func() {
				res, err := c.ask(t.Context(), "POST", "/machine/register", r)
				if err != nil {
					statuses <- 0
					return
				}
				res.Body.Close()
				statuses <- res.StatusCode
			}()
		}
	}
	for range 50 { // 320 requests need 5 MiB
		if status := <-statuses; status != http.StatusServiceUnavailable {
			t.Fatalf("one network holds all it wants: %d", status)
		}
	}
	if held, networks := wire.BodiesHeld(s.wire); held > wire.StrangersHold/8 || networks != 1 {
		t.Errorf("%d bytes are held for %d networks", held, networks)
	}
	other := &client{s: s, machine: key.NewMachine(), node: key.NewNode(), addr: "192.0.2.8"}
	other.connect()
	other.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	for _, w := range writers {
		w.Close()
	}
	until(t, "all is given back", func() bool {
		held, networks := wire.BodiesHeld(s.wire)
		return held == 0 && networks == 0
	})
}

func TestUnknownMachinesOfManyNetworksLeaveRoomForOthers(t *testing.T) {
	var b wire.Bodies
	const piece = 16 << 10
	held := map[string]int{}
	for i := range 1000 {
		for network := strconv.Itoa(i); b.Take(network, piece); {
			held[network] += piece
		}
	}
	total := 0
	for network, n := range held {
		total += n
		if n > wire.StrangersHold/8 {
			t.Errorf("network %s holds %d bytes", network, n)
		}
	}
	if total > wire.StrangersHold || total < wire.StrangersHold/2 {
		t.Errorf("%d bytes are held in total", total)
	}
	if !b.Take("another", 4<<10) {
		t.Error("another network cannot register")
	}
	b.Give("another", 4<<10)
	for network, n := range held {
		b.Give(network, n)
	}
	for n := piece; n <= wire.StrangersHold/10; n += piece {
		if !b.Take("another", piece) {
			t.Fatalf("what was given back is not free: %d bytes", n)
		}
	}
}

func TestMachineHasAFewConnections(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	other, first := s.client(), s.client()
	other.joins(withKey(text))
	first.joins(withKey(text))
	asks := func(c *client) bool {
		res, err := c.ask(t.Context(), "POST", "/machine/audit-log", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	if !asks(other) || !asks(first) {
		t.Fatal("a client is not served")
	}
	// Handshakes alone do not count, because they can be replayed.
	for range 20 {
		(&client{s: s, machine: first.machine, node: first.node}).connect()
	}
	if !asks(first) {
		t.Fatal("a connection was closed for handshakes")
	}
	for i := range 16 {
		c := &client{s: s, machine: first.machine, node: first.node}
		if c.connect(); !asks(c) {
			t.Fatalf("connection %d is not served", i)
		}
		if i < 15 && !asks(first) {
			t.Fatalf("the first was closed for number %d", i)
		}
	}
	until(t, "the oldest is closed", func() bool { return !asks(first) })
	if !asks(other) {
		t.Error("another machine lost its connection")
	}
	if n := wire.ProvenMachines(s.wire); n != 2 {
		t.Errorf("%d machines are counted", n)
	}
	other.http.Close()
	until(t, "one that left is forgotten", func() bool { return wire.ProvenMachines(s.wire) == 1 })
}
