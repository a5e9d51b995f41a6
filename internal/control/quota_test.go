package control_test

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func openWithQuotas(t *testing.T, q control.Quotas) service {
	t.Helper()
	return open(t).withQuotas(q)
}

// withQuotas returns the server after a restart with other limits.
func (s service) withQuotas(q control.Quotas) service {
	s.Service = control.New(control.Config{
		Ledger: s.ledger, History: s.history, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Quotas: q,
		PrefixV4: nets("100.64.0.0/10")[0], PrefixV6: nets("fd7a:115c:a1e0::/48")[0],
	})
	return s
}

// A limit below the current number refuses new devices, but not existing ones: a device
// whose key has expired can log in again.
func TestLowerQuotaKeepsExistingDevices(t *testing.T) {
	for name, q := range map[string]control.Quotas{"user": {NodesPerUser: 2}, "key": {NodesPerKey: 2}} {
		s := openWithQuotas(t, control.Quotas{})
		put(t, s)
		var keys []string
		for range 2 {
			_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Reusable: true})
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		join := func(machine, node uint64, key string, expiry mesh.Time) error {
			_, err := s.Joins.Join(t.Context(), mesh.Actor{}, control.Joining{
				Proven:     true,
				MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(node), PreAuthKey: key, Expiry: expiry, Host: control.Host{Hostname: "host"},
			})
			return err
		}
		for i := range uint64(4) {
			if err := join(100+i, 100+i, keys[0], 0); err != nil {
				t.Fatal(err)
			}
		}
		s = s.withQuotas(q)
		if err := join(100, 100, "", 1); err != nil {
			t.Fatal(err)
		}
		if err := join(100, 200, keys[0], 0); err != nil {
			t.Errorf("%s: a device that was logged out cannot return: %v", name, err)
		}
		if err := join(104, 104, keys[0], 0); reason(err) != control.Conflict {
			t.Errorf("%s: a new device: %v", name, err)
		}
		if q.NodesPerKey == 0 {
			continue
		}
		for i := range uint64(3) {
			if err := join(100+i, 300+i, keys[1], 0); (reason(err) == control.Conflict) != (i == 2) {
				t.Errorf("device %d changes its key: %v", i, err)
			}
		}
	}
}

// However many machines join at the same time, the quotas are never exceeded.
func TestQuotasHoldAgainstMachinesThatJoinAtOnce(t *testing.T) {
	for name, q := range map[string]control.Quotas{"user": {NodesPerUser: 3}, "key": {NodesPerKey: 3}} {
		s := openWithQuotas(t, q)
		put(t, s)
		_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Reusable: true})
		if err != nil {
			t.Fatal(err)
		}
		join := func(i uint64) error {
			_, err := s.Joins.Join(t.Context(), mesh.Actor{}, control.Joining{
				Proven:     true,
				MachineKey: meshgen.MachineKey(100 + i), NodeKey: meshgen.NodeKey(100 + i), PreAuthKey: key, Host: control.Host{Hostname: "host"},
			})
			return err
		}
		var joined atomic.Int32
		var all sync.WaitGroup
		for i := range uint64(12) {
			all.Go(func() {
				switch err := join(i); {
				case err == nil:
					joined.Add(1)
				case reason(err) != control.Conflict || !strings.Contains(err.Error(), "limits.nodes_per_"+name):
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		all.Wait()
		if n := s.ledger.World().Nodes.Len(); joined.Load() != 3 || n != 3 {
			t.Errorf("%s: %d machines joined, %d nodes", name, joined.Load(), n)
		}
		if q.NodesPerUser > 0 {
			commit(t, s, mesh.UserPut{User: &mesh.User{ID: 2, Name: "bob"}}, mesh.NodePut{Node: meshgen.Node(50, 2)})
			if _, err := s.Nodes.Move(t.Context(), admin, "50", "alice", ""); reason(err) != control.Conflict {
				t.Errorf("a node is moved to a user who has enough: %v", err)
			}
		}
		for n := range s.ledger.World().Nodes.All() {
			if err := s.Nodes.Delete(t.Context(), admin, n.ID.String(), ""); err != nil {
				t.Fatal(err)
			}
			break
		}
		if err := join(77); err != nil {
			t.Errorf("%s: after a node was deleted: %v", name, err)
		}
	}
}
