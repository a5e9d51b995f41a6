package control_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// relayProcess is one process of a relay. Its key is that of its state directory.
type relayProcess struct {
	at  *replica // to which it reports
	id  mesh.RelayID
	url string
	key uint64
}

// report reports as relays do.
func (p relayProcess) report(t *testing.T) error {
	t.Helper()
	place := mesh.RelayPlace{URL: p.url, STUNPort: 3478, Key: meshgen.NodeKey(p.key)}
	err := p.at.Relays.Report(t.Context(), p.id, place, mesh.RelayReport{})
	if err != nil && (!errors.Is(err, control.ErrRelayInUse) || !strings.Contains(err.Error(), "stop it")) {
		t.Fatal(err)
	}
	return err
}

// untilAccepted reports every two seconds, and returns how long that was refused.
func (p relayProcess) untilAccepted(t *testing.T) time.Duration {
	t.Helper()
	for began := time.Now(); ; pass(2 * time.Second) {
		if p.report(t) == nil {
			return time.Since(began)
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatal("a relay that has been replaced is never accepted")
		}
	}
}

// relayIn returns a process of a new relay.
func relayIn(t *testing.T, r *replica) relayProcess {
	t.Helper()
	made, _, err := r.Relays.Create(t.Context(), admin, control.NewRelay{Name: "ams-1", RegionCode: "ams"})
	if err != nil {
		t.Fatal(err)
	}
	return relayProcess{at: r, id: made.ID, url: "https://one.example.com", key: 1}
}

// Two processes with the key of one relay would otherwise replace each other all the time, and all nodes would get a new
// relay map every few seconds.
func TestSecondProcessOfARelayIsRefusedWhileTheFirstReports(t *testing.T) {
	for name, replicas := range map[string]int{"at one replica": 1, "at two replicas": 2} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				c := newCluster(t)
				all := []*replica{c.start(t, "a", ""), c.start(t, "b", "")}
				first := relayIn(t, all[0])
				second := first
				second.at, second.url, second.key = all[replicas-1], "https://two.example.com", 2
				if err := first.report(t); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				for i := range 300 { // ten minutes
					if second.report(t) == nil {
						t.Fatalf("accepted after %d s", 2*i)
					}
					if i%7 == 6 {
						if err := first.report(t); err != nil {
							t.Fatalf("the process that was there first is refused after %d s: %v", 2*i, err)
						}
					}
					pass(2 * time.Second)
				}
			})
		})
	}
}

func TestRelayThatLostItsKeyJoinsAgainSoon(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		here, there := c.start(t, "a", ""), c.start(t, "b", "")
		p := relayIn(t, here)
		const soon = 31 * time.Second
		loseKey := func(at *replica) {
			t.Helper()
			for range 6 { // reports that are not committed at once, too
				if err := p.report(t); err != nil {
					t.Fatal(err)
				}
				pass(15 * time.Second)
			}
			if err := p.report(t); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			p.at, p.key = at, p.key+1
			if took := p.untilAccepted(t); took > soon {
				t.Errorf("the relay is refused for %v at replica %s", took, at.id)
			}
		}
		loseKey(here)
		loseKey(there)
		p.url = "https://two.example.com"
		if err := p.report(t); err != nil {
			t.Fatalf("a relay with the same key must be able to move: %v", err)
		}
		if err := p.at.Relays.Leave(t.Context(), p.id, meshgen.NodeKey(p.key)); err != nil {
			t.Fatal(err)
		}
		p.key, p.url = p.key+1, "https://three.example.com"
		if err := p.report(t); err != nil {
			t.Errorf("after a relay has left, another process is refused: %v", err)
		}
	})
}
