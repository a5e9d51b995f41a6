package control_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// commitDNS runs DNS.Configure in the background, as the server does.
func (r *replica) commitDNS(t *testing.T, domain string, pinned bool) {
	r.run(t, func(ctx context.Context) {
		if err := r.DNS.Configure(ctx, mesh.DNS{MagicDNS: true, BaseDomain: domain}, pinned); err != nil {
			t.Error(err)
		}
	})
}

// run runs f until the test ends.
func (r *replica) run(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func (r *replica) wantDomain(t *testing.T, want string) {
	t.Helper()
	if got := r.ledger.World().DNS().BaseDomain; got != want {
		t.Fatalf("clients are told %q, want %q", got, want)
	}
}

func TestConfiguredDNSIsTakenAtTheFirstStart(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "1")
		r.commitDNS(t, "first.example", false)
		synctest.Wait()
		r.wantDomain(t, "first.example")
	})
}

func TestChangedConfigurationIsTakenAfterARestart(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "1")
		r.commitDNS(t, "first.example", true)
		pass(time.Minute)
		r.kill()
		pass(100 * time.Millisecond) // the previous run still counts as alive
		r = c.start(t, "again", "2")
		r.commitDNS(t, "second.example", true)
		pass(time.Second)
		r.wantDomain(t, "first.example")
		pass(10 * time.Second)
		r.wantDomain(t, "second.example")
		rev := r.ledger.World().Rev
		r.commitDNS(t, "second.example", true)
		pass(time.Minute)
		if r.ledger.World().Rev != rev {
			t.Error("the same value was committed again")
		}
	})
}

func TestReplicasThatDisagreeOverwriteNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", "1"), c.start(t, "b", "1")
		a.commitDNS(t, "first.example", true)
		b.commitDNS(t, "first.example", true)
		pass(time.Minute)
		b.kill()
		pass(time.Minute)
		b = c.start(t, "b2", "2") // the replicas get the new configuration one after the other
		b.commitDNS(t, "second.example", true)
		pass(time.Minute)
		a.wantDomain(t, "first.example")
		b.wantDomain(t, "first.example")
		a.kill()
		a = c.start(t, "a2", "2")
		a.commitDNS(t, "second.example", true)
		pass(10 * time.Second)
		a.wantDomain(t, "second.example")
		b.wantDomain(t, "second.example")
	})
}

func TestValueOfTheAPIStaysUnlessTheFilePinsAnother(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "1")
		r.commit(t, mesh.SettingPut{Setting: &mesh.Setting{
			ID: 1, Key: mesh.SettingDNS, Value: `{"magicDNS":true,"baseDomain":"old.example","nameservers":["192.0.2.1"]}`, Source: "api",
		}})
		r.commitDNS(t, "file.example", false)
		pass(time.Minute)
		r.wantDomain(t, "file.example") // which the API cannot change
		if servers := r.ledger.World().DNS().Nameservers; len(servers) != 1 {
			t.Errorf("the file undid what the API set: %v", servers)
		}
		r.commitDNS(t, "file.example", true)
		pass(time.Second)
		if servers := r.ledger.World().DNS().Nameservers; len(servers) != 0 {
			t.Errorf("the file pins its values, and clients are told %v", servers)
		}
	})
}

func TestClientSettingsAreCommittedWhenTheReplicasAgree(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "1")
		configure := func(r *replica, clients mesh.Clients) {
			r.run(t, func(ctx context.Context) {
				if err := r.DNS.ConfigureClients(ctx, clients); err != nil {
					t.Error(err)
				}
			})
		}
		configure(a, mesh.Clients{})
		pass(10 * time.Second)
		if _, stored := a.ledger.World().Settings.ByKey(mesh.SettingClients); stored {
			t.Error("the defaults were committed")
		}
		b := c.start(t, "b", "2")
		want := mesh.Clients{NoTaildrop: true, RandomPort: true, CacheMaps: true, ServerAddrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
		configure(b, want)
		pass(time.Minute)
		if got := a.ledger.World().Clients(); !got.Equal(mesh.Clients{}) {
			t.Errorf("the replicas disagree, and clients are told %+v", got)
		}
		a.kill()
		pass(time.Minute)
		if got := b.ledger.World().Clients(); !got.Equal(want) {
			t.Errorf("clients are told %+v", got)
		}
		configure(b, mesh.Clients{})
		pass(time.Minute)
		if got := b.ledger.World().Clients(); !got.Equal(mesh.Clients{}) {
			t.Errorf("clients are still told %+v", got)
		}
	})
}

// commitRelays runs Relays.Configure in the background.
func (r *replica) commitRelays(t *testing.T, text string) {
	r.run(t, func(ctx context.Context) { r.Relays.Configure(ctx, text) })
}

func (r *replica) wantRelayMap(t *testing.T, want string) {
	t.Helper()
	if got, _ := r.ledger.World().RelaySettings(); got != want {
		t.Fatalf("clients are told %q, want %q", got, want)
	}
}

const (
	oneRegion  = `{"Regions":{"1":{}}}`
	twoRegions = `{"Regions":{"1":{},"2":{}}}`
)

func TestRelayMapIsCommittedWhenItDiffers(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "")
		pass(5 * time.Second)
		for _, c := range []struct {
			text   string
			change bool
		}{{"", false}, {oneRegion, true}, {oneRegion, false}, {twoRegions, true}, {"", true}, {"", false}} {
			rev := r.ledger.World().Rev
			r.Relays.Configure(t.Context(), c.text)
			r.wantRelayMap(t, c.text)
			if changed := r.ledger.World().Rev != rev; changed != c.change {
				t.Errorf("%q was committed: %v", c.text, changed)
			}
		}
	})
}

func TestRelayMapOfALiveReplicaIsNotOverwrittenByAnotherConfiguration(t *testing.T) {
	for _, other := range []string{"", twoRegions} {
		waittest.Bubble(t, func(t *testing.T) {
			c := newCluster(t)
			a := c.start(t, "a", "1")
			a.commitRelays(t, oneRegion)
			pass(5 * time.Second)
			b := c.start(t, "b", "2")
			b.commitRelays(t, other) // even before it knows the other replicas
			pass(time.Minute)
			a.wantRelayMap(t, oneRegion)
			a.kill()
			pass(10 * time.Second)
			b.wantRelayMap(t, other)
		})
	}
}

func TestConfiguredSettingsWaitForTheDatabase(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.commitRelays(t, oneRegion)
		r.commitDNS(t, "first.example", true)
		pass(5 * time.Second)
		c.setAway(true, r)
		r.commitRelays(t, "")
		r.commitDNS(t, "second.example", true)
		pass(time.Minute)
		r.wantRelayMap(t, oneRegion)
		r.wantDomain(t, "first.example")
		c.setAway(false, r)
		pass(10 * time.Second)
		r.wantRelayMap(t, "")
		r.wantDomain(t, "second.example")
	})
}

// publish runs Relays.Publish in the background.
func (r *replica) publish(t *testing.T, region int) {
	r.run(t, func(ctx context.Context) {
		err := r.Relays.Publish(ctx, region, json.RawMessage(`{"RegionID": 901}`))
		if err != nil || ctx.Err() == nil {
			t.Errorf("gave up: %v", err)
		}
	})
}

func (r *replica) wantRelays(t *testing.T, want map[string]string) {
	t.Helper()
	_, embedded := r.ledger.World().RelaySettings()
	for number, replica := range want {
		if embedded[number].Replica != replica {
			t.Fatalf("the relays are %v, want %v", embedded, want)
		}
	}
	if len(embedded) != len(want) {
		t.Fatalf("the relays are %v, want %v", embedded, want)
	}
}

func TestEachReplicaPublishesItsRelay(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.publish(t, 901)
		pass(2 * time.Second)
		b.publish(t, 902)
		pass(2 * time.Second)
		a.wantRelays(t, map[string]string{"901": "a", "902": "b"})
		c.setAway(true, b)
		pass(30 * time.Second) // b counts as dead, then returns
		a.wantRelays(t, map[string]string{"901": "a"})
		c.setAway(false, b)
		pass(10 * time.Second)
		a.wantRelays(t, map[string]string{"901": "a", "902": "b"})
	})
}

func TestRegionOfTheRunBeforeIsTakenOver(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.publish(t, 901)
		pass(time.Minute)
		a.kill()
		again := c.start(t, "again", "")
		again.publish(t, 901)
		pass(20 * time.Second)
		again.wantRelays(t, map[string]string{"901": "again"})
	})
}

func TestRegionOfALiveReplicaIsLeftToIt(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.publish(t, 901)
		pass(10 * time.Second)
		c.setAway(true, &replica{id: "b"})
		b := c.start(t, "b", "") // does not know yet which replicas are alive
		b.publish(t, 901)
		pass(900 * time.Millisecond)
		c.setAway(false, b)
		pass(5 * time.Minute)
		b.wantRelays(t, map[string]string{"901": "a"})
		a.kill()
		pass(10 * time.Second)
		b.wantRelays(t, map[string]string{"901": "b"})
	})
}
