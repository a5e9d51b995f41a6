package stream_test

import (
	"runtime"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// checked returns how many samples were verified, and how many of them were wrong.
func (b *bench) checked() (checks, failures float64) {
	b.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "mesh_stream_checks_total":
			checks = f.GetMetric()[0].GetCounter().GetValue()
		case "mesh_stream_check_failures_total":
			failures = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return checks, failures
}

// The self-check verifies exactly the bytes that devices are sent: those that viewers
// share, those for a single viewer, and full maps.
func TestWhatDevicesAreSentIsVerified(t *testing.T) {
	b := newBench(t, 70)
	b.hub.RequestSamples() // there is no stream yet, so only a full map is sampled
	one := b.open("node=1")
	one.next()
	b.hub.VerifySample()
	b.record()
	for _, ev := range []mesh.Event{
		mesh.NodeNet{ID: 2, Net: meshgen.Net(5)}, // shared
		mesh.NodeNet{ID: 1, Net: meshgen.Net(5)}, // nothing to send
		mesh.NodePut{Node: renamed(1)},           // for the viewer alone
	} {
		b.commit(ev)
		b.record()
		b.hub.VerifySample()
	}
	if checks, failures := b.checked(); checks != 4 || failures != 0 {
		t.Errorf("%v checks, %v failures", checks, failures)
	}
}

// record lets the stream of node 1, which must be the only one, record what it sends from now on. What it has recorded
// before becomes a sample.
func (b *bench) record() {
	for b.hub.Rev(1) < b.ledger.World().Rev {
		runtime.Gosched()
	}
	b.settle() // or its first full map would become a sample, too
	b.hub.RequestSamples()
	b.settle()
}

// settle waits until the stream of node 1 has done everything for which it was woken before. The stream answers a ping last, so it can
// be asked a second time after the round that it was in, and a third time after a whole round.
func (b *bench) settle() {
	for range 3 {
		for !b.hub.Ask(1, "https://x") {
			runtime.Gosched()
		}
	}
}

func renamed(id mesh.NodeID) *mesh.Node {
	n := meshgen.Node(id, 1)
	n.Name = "renamed"
	return n
}

// A stream that is not woken for a change that concerns it is detected, although it sends nothing that could be wrong.
func TestStreamThatIsNotWokenIsNoticed(t *testing.T) {
	b := newBench(t, 3)
	b.open("node=1").next()
	b.record()
	b.hub.Forget(1)
	b.commit(mesh.NodeNet{ID: 2, Net: meshgen.Net(5)})
	b.record()
	b.hub.VerifySample()
	if checks, failures := b.checked(); checks != 1 || failures != 1 {
		t.Errorf("%v checks, %v failures", checks, failures)
	}
}

// A mistake in what devices are sent is detected, whatever its cause.
func TestWrongUpdatesAreNoticed(t *testing.T) {
	var other [][]byte // a message for another change
	for name, spoil := range map[string]func(netmap.Update) netmap.Update{
		"nothing is sent": func(netmap.Update) netmap.Update { return netmap.Update{} },
		"it is of another change": func(u netmap.Update) netmap.Update {
			if other == nil {
				other = u.Messages
			}
			u.Messages = other
			return u
		},
		"it is cut off": func(u netmap.Update) netmap.Update {
			last := u.Messages[0]
			u.Messages = [][]byte{last[:len(last)-1]}
			return u
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			b.hub.SpoilUpdates(spoil)
			b.open("node=1").next()
			b.commit(mesh.NodeNet{ID: 2, Net: meshgen.Net(5)})
			b.record()
			b.commit(mesh.NodePut{Node: meshgen.Node(4, 1)})
			b.record()
			b.hub.VerifySample()
			if checks, failures := b.checked(); checks != 1 || failures != 1 {
				t.Errorf("%v checks, %v failures", checks, failures)
			}
		})
	}
}
