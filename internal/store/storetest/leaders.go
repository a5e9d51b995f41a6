package storetest

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// leaders checks that old leaders are deleted, except for the one at the start of the kept period.
func leaders(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	office, other := netip.MustParsePrefix("192.168.7.0/24"), netip.MustParsePrefix("fd00:7::/64")
	lead := func(p netip.Prefix, node mesh.NodeID, name string) store.Command {
		return store.Command{Events: user(1), Leaders: []history.Leader{{Prefix: p, Node: node, Name: name}}}
	}
	put(t, s, lead(office, 1, "east"), lead(other, 9, "büro"))
	put(t, s, lead(office, 2, "west"))
	put(t, s, lead(office, 0, ""))
	check := func(p netip.Prefix, limit int, want ...string) {
		t.Helper()
		list, err := h.Leaders(t.Context(), p, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			if l.Prefix != p || l.At == 0 {
				t.Errorf("got %+v", l)
			}
			got = append(got, fmt.Sprintf("%d: %d %s", l.Rev, l.Node, l.Name))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(office, 10, "4: 0 ", "3: 2 west", "1: 1 east")
	check(office, 2, "4: 0 ", "3: 2 west")
	check(other, 10, "2: 9 büro")
	check(netip.MustParsePrefix("10.0.0.0/8"), 10)

	forget := func(age time.Duration, want int64) {
		t.Helper()
		if n, err := h.Forget(t.Context(), age, math.MaxInt64); err != nil || n != want {
			t.Errorf("%d rows went, want %d (%v)", n, want, err)
		}
	}
	forget(time.Hour, 0)
	e.Exec(t, "UPDATE route_leaders SET at = at - 7200000000 WHERE rev < 4")
	forget(time.Hour, 1)
	check(office, 10, "4: 0 ", "3: 2 west")
	check(other, 10, "2: 9 büro")
}
