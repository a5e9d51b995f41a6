//go:build !race

package meshtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDrainedReplicaHandsItsNodesOverAndGetsThemBackAfterItsRestart(t *testing.T) {
	t.Parallel()
	const nodes = 60
	r := startReplicas(t, pg, 2, nil)
	r.Check(t, "/ready")
	drained, other := r.servers[0], r.servers[1]
	drained.CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), drained.PreAuthKey("alice", "--reusable"), nodes)
	eventually(t, patience, func() error {
		if out := drained.CLI("status"); strings.Count(out, "last seen") < 2 {
			return fmt.Errorf("the replicas have not heard of each other:\n%s", out)
		}
		return nil
	})
	if out := drained.CLI("drain"); !strings.Contains(out, "You can stop it now") {
		t.Errorf("drain prints %q", out)
	}
	mustHold(t, patience, nodes, other)
	if _, err := drained.API(t.Context(), "GET", "/ready", ""); err == nil {
		t.Error("the drained replica is ready")
	}
	eventually(t, patience, func() error {
		if out := other.CLI("status"); !strings.Contains(out, "draining, 0 nodes") {
			return fmt.Errorf("the other replica does not show that it is drained:\n%s", out)
		}
		return nil
	})
	if out, err := other.TryCLI(t.Context(), "drain"); err == nil || !strings.Contains(err.Error()+out, "no other replica can take the nodes") {
		t.Errorf("the last replica is drained: %q, %v", out, err)
	}
	drained.Stop()
	drained.Resume()
	began := time.Now()
	eventually(t, 3*time.Minute, func() error {
		held, err := drained.Metric(t.Context(), "mesh_streams_open")
		if err == nil && held < nodes/4 {
			err = fmt.Errorf("it has %v nodes", held)
		}
		return err
	})
	t.Logf("the replica has its share of nodes %v after its restart", time.Since(began).Round(time.Second))
	t.Logf("nobody was shown offline for longer than %v", watch(t, 5*time.Second, absence, all))
	mustFlow(t, all[:10], 1)
	mustAgree(t, r.servers...)
}

func TestStoppedReplicaIsNotReadyFirstAndThenClosesItsStreamsGradually(t *testing.T) {
	t.Parallel()
	const nodes = 100
	r := startReplicas(t, pg, 2, nil)
	stopped := r.servers[0]
	stopped.CLI("users", "create", "alice")
	way := NewBalancer(t, stopped.Addr) // the nodes of this replica; they have no way to the other one
	join(t, NewCrowd(t, way.URL), stopped.PreAuthKey("alice", "--reusable"), nodes)
	eventually(t, patience, func() error {
		if out := stopped.CLI("status"); strings.Count(out, "last seen") < 2 {
			return fmt.Errorf("the replicas have not heard of each other:\n%s", out)
		}
		return nil
	})
	const ends = 2 // of each connection
	open := way.count()
	if open < ends*nodes {
		t.Fatalf("%d connections are open", open/ends)
	}
	stopped.Signal(syscall.SIGTERM)
	eventually(t, patience, func() error {
		if _, err := stopped.API(t.Context(), "GET", "/ready", ""); err == nil || !strings.Contains(err.Error(), "503") {
			return fmt.Errorf("it does not say that it is not ready: %w", err)
		}
		return nil
	})
	if left := way.count(); left < open {
		t.Errorf("%d connections were closed before it was not ready", (open-left)/ends)
	}
	var first time.Time // when connections began to close
	eventually(t, patience, func() error {
		left := way.count()
		if first.IsZero() && left < open {
			first = time.Now()
		}
		if left > 0 {
			return fmt.Errorf("%d connections are open", left/ends)
		}
		return nil
	})
	if took := time.Since(first); took < 300*time.Millisecond {
		t.Errorf("all connections were closed within %v", took)
	} else {
		t.Logf("it closed its connections over %v", took.Round(time.Millisecond))
	}
	stopped.end(syscall.SIGTERM)
}

// count returns the number of open ends of connections.
func (b *Balancer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}
