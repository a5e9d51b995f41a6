package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// A machine that registers in a loop causes few commits, whatever it changes each time. It
// does not block others, can always log out, and can register again later.
func TestMachineThatRegistersAllTheTimeIsSlowedDown(t *testing.T) {
	const loops, burst = 200, 30
	for name, step := range map[string]func(i int, j *control.Joining){
		"sooner expiry":    func(i int, j *control.Joining) { j.Expiry -= mesh.Time(i) },
		"expiry by hours":  func(i int, j *control.Joining) { j.Expiry = j.Expiry.Add(-time.Duration(i) * time.Hour) },
		"new node keys":    func(i int, j *control.Joining) { j.NodeKey = meshgen.NodeKey(uint64(1000 + i)) },
		"login and logout": func(i int, j *control.Joining) { *j = inAndOut(i, *j, false) },
		"ephemeral":        func(i int, j *control.Joining) { *j = inAndOut(i, *j, true) },
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				s := openWithQuotas(t, control.Quotas{})
				put(t, s)
				_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Reusable: true})
				if err != nil {
					t.Fatal(err)
				}
				joining := func(machine uint64) control.Joining {
					return control.Joining{
						Proven:     true,
						MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(machine), PreAuthKey: key, Host: control.Host{Hostname: "host"},
						Expiry: s.ledger.Now().Add(10000 * time.Hour),
					}
				}
				var tooFast *control.TooFast
				begin := s.ledger.World().Rev
				for i := range loops {
					j := joining(100)
					step(i, &j)
					_, err := s.Joins.Join(t.Context(), mesh.Actor{}, j)
					if i < burst && err != nil || err != nil && (!errors.As(err, &tooFast) || j.Expiry == 1) {
						t.Fatalf("registration %d: %v", i, err)
					}
				}
				commits := int(s.ledger.World().Rev - begin)
				t.Logf("%d registrations: %d commits", loops, commits)
				if commits > burst+2 || name != "sooner expiry" && tooFast == nil {
					t.Errorf("%d commits, want at most %d; %v", commits, burst+2, tooFast)
				}
				if _, err := s.Joins.Join(t.Context(), mesh.Actor{}, joining(101)); err != nil {
					t.Errorf("another machine: %v", err)
				}
				if tooFast == nil {
					return
				}
				if tooFast.After <= 0 || tooFast.After > 11*time.Minute {
					t.Errorf("told to wait for %s", tooFast.After)
				}
				pass(tooFast.After)
				j := joining(100)
				j.NodeKey = meshgen.NodeKey(5000)
				if _, err := s.Joins.Join(t.Context(), mesh.Actor{}, j); err != nil {
					t.Errorf("after the time it was told: %v", err)
				}
			})
		})
	}
}

// inAndOut returns a request that logs in with a new key in even rounds and logs out in
// odd ones.
func inAndOut(i int, j control.Joining, ephemeral bool) control.Joining {
	j.NodeKey, j.Ephemeral = meshgen.NodeKey(uint64(1000+i/2)), ephemeral
	if i%2 == 1 {
		j.Expiry = 1
	}
	return j
}
