package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func deadLetters(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	now := mesh.TimeOf(time.Now())
	const kept, gone mesh.WebhookID = 1, 2
	evs := []mesh.Event{
		mesh.WebhookPut{Webhook: &mesh.Webhook{ID: kept}},
		mesh.WebhookPut{Webhook: &mesh.Webhook{ID: gone}},
		mesh.DeadLetterPut{Letter: meshgen.DeadLetter(1, gone, now)},
		mesh.DeadLetterPut{Letter: meshgen.DeadLetter(2, kept, now.Add(-history.DeadLetterAge-time.Hour))},
		mesh.DeadLetterPut{Letter: meshgen.DeadLetter(3, kept, now)},
	}
	var want []mesh.DeadLetter // newest first
	for i := range history.DeadLetters {
		l := meshgen.DeadLetter(mesh.DeadLetterID(4+i), kept, now)
		evs, want = append(evs, mesh.DeadLetterPut{Letter: l}), append(want, *l)
	}
	slices.Reverse(want)
	Append(t, s, evs)
	list := func(w mesh.WebhookID, before mesh.DeadLetterID, limit int) []mesh.DeadLetter {
		t.Helper()
		out, err := h.DeadLetters(t.Context(), w, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if n := len(list(kept, 0, 2000)); n != history.DeadLetters+2 {
		t.Errorf("%d letters before any is forgotten", n)
	}
	Append(t, s, []mesh.Event{mesh.WebhookGone{ID: gone}})
	if n, err := h.Forget(t.Context(), time.Hour, time.Hour); n != 3 || err != nil {
		t.Errorf("forgot %d, want the one of no webhook, the old one and the one too many (%v)", n, err)
	}
	if diff := cmp.Diff(want, list(kept, 0, 2000)); diff != "" {
		t.Errorf("all:\n%s", diff)
	}
	Append(t, s, []mesh.Event{mesh.DeadLetterGone{ID: want[1].ID}})
	if diff := cmp.Diff([]mesh.DeadLetter{want[0], want[2]}, list(kept, 0, 2)); diff != "" {
		t.Errorf("the newest:\n%s", diff)
	}
	if diff := cmp.Diff(want[3:4], list(kept, want[2].ID, 1)); diff != "" {
		t.Errorf("below one:\n%s", diff)
	}
	if left := list(gone, 0, 10); len(left) != 0 {
		t.Errorf("%d letters of a webhook that is gone", len(left))
	}
}
