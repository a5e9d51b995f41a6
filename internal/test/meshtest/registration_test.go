package meshtest

import (
	"fmt"
	"sync"
	"testing"
)

func TestSingleUseKeyRacedByManyRegistersOne(t *testing.T) {
	t.Parallel()
	const (
		nodes = 50
		spent = "Node registration rejected: Authentication failed: invalid key (the key is single-use and was already used; ask your administrator for a new one)"
	)
	r := startReplicas(t, pg, 2, nil)
	r.servers[0].CLI("users", "create", "alice")
	key := r.servers[0].PreAuthKey("alice")
	crowd := NewCrowd(t, r.URL)
	refusals := make([]error, nodes)
	var wait sync.WaitGroup
	for i := range nodes {
		n := crowd.Node(fmt.Sprintf("node-%d", i))
		wait.Go(func() { refusals[i] = n.Register(t.Context(), key) })
	}
	wait.Wait()
	registered := 0
	for _, err := range refusals {
		if err == nil {
			registered++
		} else if err.Error() != spent {
			t.Errorf("a node is refused with %q", err)
		}
	}
	said, counted := 0, 0.0
	for _, s := range r.servers {
		said += s.Says("node registered")
		n, err := s.Metric(t.Context(), "mesh_node_registrations_total")
		if err != nil {
			t.Fatal(err)
		}
		counted += n
	}
	if registered != 1 || said != 1 || counted != 1 {
		t.Errorf("%d nodes registered, %d were logged, %v were counted", registered, said, counted)
	}
	total, err := r.servers[0].Metric(t.Context(), "mesh_nodes_total")
	if err != nil || total != 1 {
		t.Errorf("there are %v nodes, %v", total, err)
	}
}
