package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// policyText returns a text about as long as a policy may be, with characters that take more space in the
// log.
func policyText(v mesh.PolicyVersion) string {
	text := fmt.Sprintf("// version %v\n{\"acls\": []}\n", v)
	filler := "<\"ü\\>\t&\n"
	return text + strings.Repeat(filler, (1<<20-len(text))/len(filler))
}

func policies(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	if list, err := h.Policies(t.Context(), 0, 10); len(list) != 0 || err != nil {
		t.Fatalf("%d versions before the first (%v)", len(list), err)
	}
	var want []mesh.Policy // newest first
	for v := range mesh.PolicyVersion(5) {
		p := mesh.Policy{Version: v + 1, Source: "api", Author: "key:bürö", Reason: "because", SavedAt: meshgen.Start, ConfirmBy: meshgen.Start + 1, RevertTo: v}
		if v != 2 {
			p.Text = policyText(p.Version)
		}
		Append(t, s, []mesh.Event{mesh.PolicyPut{Policy: &p}})
		want = append([]mesh.Policy{p}, want...)
	}
	want[0].ConfirmBy, want[0].RevertTo = 0, 0
	Append(t, s, []mesh.Event{mesh.PolicyPut{Policy: &want[0]}})

	log, err := s.Tail(t.Context(), store.Point{Rev: 5})
	if err != nil || len(log) != 1 {
		t.Fatalf("%d entries after the fifth (%v)", len(log), err)
	}
	if diff := cmp.Diff([]mesh.Event{mesh.PolicyPut{Policy: &want[0]}}, log[0].Events); diff != "" {
		t.Errorf("the log has another policy than was put:\n%s", diff)
	}
	if _, err := s.Prune(t.Context(), 6, -time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Forget(t.Context(), -time.Hour, -time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, ask := range []struct {
		before mesh.PolicyVersion
		limit  int
		want   []mesh.Policy
	}{{0, 10, want}, {0, 2, want[:2]}, {4, 2, want[2:4]}, {2, 10, want[4:]}, {1, 10, nil}, {99, 1, want[:1]}} {
		got, err := h.Policies(t.Context(), ask.before, ask.limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ask.want, got); diff != "" {
			t.Errorf("%d versions below %v:\n%s", ask.limit, ask.before, diff)
		}
	}
	for _, p := range want {
		if got, err := h.Policy(t.Context(), p.Version); err != nil || *got != p {
			t.Errorf("version %v differs (%v)", p.Version, err)
		}
	}
	for _, v := range []mesh.PolicyVersion{0, -1, 6} {
		if _, err := h.Policy(t.Context(), v); !errors.Is(err, history.ErrNoPolicy) {
			t.Errorf("version %v: %v", v, err)
		}
	}
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := snap.Policy(); !ok || *got != want[0] || snap.Counters.Policy != 5 {
		t.Errorf("the newest version is not what was loaded, or %v is not the last one used", snap.Counters.Policy)
	}
}
