package wire_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// fetch requests the map of a node until it contains the expected number of peers.
func (c *client) fetch(peers int) (m tailcfg.MapResponse) {
	c.s.t.Helper()
	until(c.s.t, "the map is whole", func() bool {
		res, err := c.ask(c.s.t.Context(), "POST", "/machine/map", strings.NewReader(c.mapRequest(object{"Stream": false})))
		if err != nil {
			c.s.t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			c.s.t.Fatalf("status %d", res.StatusCode)
		}
		m = next(c.s.t, res.Body)
		return len(m.Peers) == peers
	})
	return m
}

// What a node reports about itself ends up in the map of all others.
func TestNothingThatANodeSaysCostsOthersTheirMap(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	tagged := s.key(control.NewPreAuthKey{User: "alice", Reusable: true, Tags: []string{"tag:x"}})
	victim := s.client()
	victim.joins(withKey(text))
	for peers, changes := range []object{
		{"Expiry": "9999-12-31T23:59:59-12:00"}, // the year 10000 in UTC, which RFC 3339 cannot express
		{"Version": int64(1) << 40},
		{"Hostinfo": object{"Hostname": "x", "Location": object{"Priority": int64(1) << 40}}},
		{"Hostinfo": object{"Hostname": strings.Repeat("x", 10_000), "Services": "none"}},
	} {
		r := withKey(tagged)
		for name, value := range changes {
			r[name] = value
		}
		if out := s.client().register(r); out.Error != "" {
			t.Fatal(out.Error)
		}
		m := victim.fetch(peers + 1)
		for _, p := range m.Peers {
			if p.Cap > 1<<15 || p.Hostinfo.Valid() && p.Hostinfo.Location().Valid() {
				t.Errorf("%v reaches peers: %v, %v", changes, p.Cap, p.Hostinfo.Location())
			}
		}
	}
	n := meshgen.Node(100, 1) // as stored by an older version, or damaged
	n.Host = `{"Hostname":`
	s.commit(mesh.NodePut{Node: n})
	victim.fetch(5)
}

// A stranger who starts many requests and finishes none uses little memory, and not
// for long.
func TestRequestsThatAreNotFinishedEnd(t *testing.T) {
	s, _ := open(t, options{wire: func(c *wire.Config) { c.RequestTimeout = 300 * time.Millisecond }})
	handlers := func() int {
		buf := make([]byte, 8<<20)
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), "wire.(*Server).readBody(")
	}
	c := s.client()
	for range 30 {
		r, w := io.Pipe()
		defer w.Close()
		go func() { // returns when the connection closes
			if res, err := c.ask(t.Context(), "POST", "/machine/register", r); err == nil {
				res.Body.Close()
			}
		}()
		go func() { _, _ = io.WriteString(w, `{"Hostinfo":"`+strings.Repeat("x", 1000)) }()
	}
	until(t, "they have begun", func() bool { return handlers() > 0 })
	until(t, "they have ended", func() bool { return handlers() == 0 })
	if status, _, _ := c.post("/machine/audit-log", "{}"); status != 200 {
		t.Errorf("the connection is of no use any more: %d", status)
	}
}

// Two devices that run on copies of one state must not keep the server busy.
func TestDevicesThatTakeTheirNodeFromEachOtherAreHeldBack(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	a := s.client()
	a.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	b := &client{s: s, machine: a.machine, node: a.node}
	b.connect()
	streams := make(chan int)
	const warning = "two devices use the same node key and disconnect each other; log one of them out and in again"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	for _, c := range []*client{a, b} {
		go func() {
			count := 0
			for ; ctx.Err() == nil; count++ {
				res, err := c.ask(ctx, "POST", "/machine/map", strings.NewReader(c.mapRequest(nil)))
				if err != nil {
					continue // the other device took over before the response began
				}
				_, _ = io.Copy(io.Discard, res.Body) // until the other device takes over
				res.Body.Close()
			}
			streams <- count
		}()
	}
	for ctx.Err() == nil && (time.Since(began) < 2*time.Second || len(s.log.lines(t, warning)) == 0) {
		<-time.After(20 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("nobody is told")
	}
	lasted := time.Since(began)
	cancel()
	if n := <-streams + <-streams; float64(n) > 30*lasted.Seconds() {
		t.Errorf("%d streams in %v", n, lasted)
	}
}
