//go:build !race

package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// scribe passes the log of the primary to a checker while it grows.
type scribe struct {
	db      *pair
	checker *chaos.Checker
	stop    context.CancelFunc
	wait    sync.WaitGroup
	newest  chaos.Entry // that was read
	err     error       // of the last read
}

func startScribe(db *pair) *scribe {
	ctx, stop := context.WithCancel(context.Background())
	s := &scribe{db: db, checker: chaos.NewChecker(), stop: stop}
	s.wait.Go(func() { pace(ctx, 500*time.Millisecond, func(int) { s.err = s.read(ctx) }) })
	return s
}

func (s *scribe) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.db.main().URL(s.db.database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT rev, at, events FROM log WHERE rev >= $1 ORDER BY rev", int64(s.newest.Rev))
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e chaos.Entry, err error) {
		if err = row.Scan(&e.Rev, &e.At, &e.Raw); err == nil {
			e.Events, err = mesh.DecodeEvents(e.Raw)
		}
		return e, err
	})
	for _, e := range entries {
		s.take(e)
	}
	return err
}

// take passes an entry to the checker, unless it is the newest one, which must not have changed.
func (s *scribe) take(e chaos.Entry) {
	if e.Rev != s.newest.Rev {
		s.checker.Entry(e)
	} else if !bytes.Equal(e.Raw, s.newest.Raw) {
		s.checker.Report(chaos.Log, "revision %d was %s and is %s", e.Rev, s.newest.Raw, e.Raw)
	}
	s.newest = e
}

// end reads the rest of the log and compares the replayed log with the tables.
func (s *scribe) end(ctx context.Context, tables *mesh.Snapshot) []chaos.Finding {
	s.stop()
	s.wait.Wait()
	if err := s.read(ctx); err != nil {
		s.checker.Report(chaos.Error, "reading the log: %v (before: %v)", err, s.err)
	}
	if rev := s.checker.Rev(); rev < tables.Rev {
		s.checker.Report(chaos.Log, "the log ends at %d, the tables are at %d", rev, tables.Rev)
	}
	s.checker.View(chaos.View{Replica: "the primary", Rev: tables.Rev, Digest: tables.Digest()})
	return s.checker.Findings()
}

// expected returns what each node must see of a snapshot.
func expected(s *mesh.Snapshot) func(tailcfg.NodeID) (meshtest.View, error) {
	scene := netmap.SceneOf(policy.NewWorld(s, func() *lang.Doc { return nil }), nil)
	return func(id tailcfg.NodeID) (v meshtest.View, err error) {
		text, err := json.Marshal(netmap.Full(scene, mesh.NodeID(id)))
		if err != nil {
			return v, err
		}
		m := new(tailcfg.MapResponse)
		if err := json.Unmarshal(text, m); err != nil {
			return v, err
		}
		return meshtest.ViewOf(m), nil
	}
}

// differences compares what all nodes see with a snapshot. It returns the first difference, and when the last
// message arrived at a node.
func (f *fleet) differences(s *mesh.Snapshot) (arrived time.Time, err error) {
	of := expected(s)
	for _, n := range f.nodes {
		want, err := of(n.ID())
		if err != nil {
			return arrived, err
		}
		n.Look(func(v *meshtest.View) {
			if v.At.After(arrived) {
				arrived = v.At
			}
			err = sameView(want, *v)
		})
		if err != nil {
			return arrived, fmt.Errorf("%s: %w", n.Hostname, err)
		}
	}
	return arrived, nil
}

// sameView compares what a node is sent about itself and its peers.
func sameView(want, got meshtest.View) error {
	if len(want.Peers) != len(got.Peers) {
		return fmt.Errorf("it sees %d peers, want %d", len(got.Peers), len(want.Peers))
	}
	want.Self.Online, got.Self.Online = false, false // clients ignore it
	if !samePeer(want.Self, got.Self) {
		return fmt.Errorf("it is %+v, want %+v", got.Self, want.Self)
	}
	for id, peer := range want.Peers {
		if !samePeer(peer, got.Peers[id]) {
			return fmt.Errorf("it sees %+v, want %+v", got.Peers[id], peer)
		}
	}
	return nil
}

// samePeer does not tell an empty list from an absent one.
func samePeer(a, b meshtest.Peer) bool {
	return slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Endpoints, b.Endpoints) &&
		reflect.DeepEqual([]any{a.ID, a.Name, a.Key, a.HomeDERP, a.Online, a.Expired}, []any{b.ID, b.Name, b.Key, b.HomeDERP, b.Online, b.Expired})
}

// presence checks that exactly the connected nodes are online.
func (f *fleet) presence(s *mesh.Snapshot) error {
	connected := map[mesh.NodeID]bool{}
	for _, n := range f.nodes {
		connected[mesh.NodeID(n.ID())] = true
	}
	var wrong []string
	for n := range s.Nodes.All() {
		want := connected[n.ID] || strings.HasPrefix(n.Name, "client-")
		if n.Presence.Online != want {
			wrong = append(wrong, n.Name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d nodes have the wrong presence: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], ", "))
	}
	return nil
}

// converged is how long the fleet took after the last fault.
type converged struct{ maps, presence time.Duration }

// converge waits until all nodes see the final snapshot, and until presence is correct, with limits.
func (f *fleet) converge(healed time.Time, mapsLimit, presenceLimit time.Duration) (c converged, final *mesh.Snapshot, err error) {
	c = converged{maps: -1, presence: -1}
	for deadline := healed.Add(max(mapsLimit, presenceLimit)); time.Now().Before(deadline) || final == nil; <-time.After(250 * time.Millisecond) {
		s, failed := f.db.snapshot(f.t.Context())
		if failed != nil {
			if err = failed; f.t.Context().Err() != nil {
				return c, final, err
			}
			continue
		}
		final = s
		now := time.Now()
		arrived, differs := f.differences(s)
		if c.maps = -1; differs == nil {
			c.maps = max(0, arrived.Sub(healed))
		}
		wrong := f.presence(s)
		if wrong == nil && c.presence < 0 {
			c.presence = now.Sub(healed)
		}
		if err = errors.Join(differs, wrong); err == nil {
			break
		}
	}
	switch {
	case err != nil:
		return c, final, fmt.Errorf("%v after the last fault: %w", time.Since(healed).Round(time.Second), err)
	case c.maps > mapsLimit:
		return c, final, fmt.Errorf("all maps are right %v after the last fault, want %v", c.maps, mapsLimit)
	case c.presence > presenceLimit:
		return c, final, fmt.Errorf("presence is right %v after the last fault, want %v", c.presence, presenceLimit)
	}
	return c, final, nil
}

// users returns the users that a replica shows.
func (f *fleet) users(m *member) (users []chaos.Issue, err error) {
	text, err := m.API(f.t.Context(), http.MethodGet, "/api/v1/user", "")
	if err != nil {
		return nil, err
	}
	var answer struct{ Users []chaos.Issue }
	err = json.Unmarshal(text, &answer)
	return answer.Users, err
}

// kept compares what the administrator was told with what every replica shows.
func (w *workload) kept() (found []chaos.Finding) {
	for _, m := range w.fleet.members {
		users, err := w.fleet.users(m)
		if err != nil {
			found = append(found, chaos.Finding{Sort: chaos.Error, Text: err.Error()})
			continue
		}
		users = slices.DeleteFunc(users, func(u chaos.Issue) bool { return !strings.HasPrefix(u.Name, "user-"+w.prefix) })
		found = append(found, chaos.Kept(w.created, w.deleted, users)...)
	}
	return found
}

// agree reports inconsistencies that the replicas have detected themselves.
func (f *fleet) agree() (found []chaos.Finding) {
	for _, m := range f.members {
		for _, name := range []string{"mesh_stream_check_failures_total", "mesh_ledger_digest_mismatches_total", "mesh_ledger_lost_revisions_total"} {
			if n, err := m.Metric(f.t.Context(), name); err != nil || n != 0 {
				found = append(found, chaos.Finding{Sort: chaos.Digest, Text: fmt.Sprintf("%s: %s is %v, %v", m.Addr, name, n, err)})
			}
		}
	}
	return found
}
