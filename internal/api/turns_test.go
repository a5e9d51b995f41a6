package api

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestOneCallerLooksAtOneDraftAtATimeAndHoldsUpNobodyElse(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		turns := newTurns()
		turns.all = make(chan struct{}, 2)
		first, refusal := turns.take(t.Context(), "a")
		if refusal != "" {
			t.Fatal(refusal)
		}
		second := make(chan func())
		go func() {
			done, _ := turns.take(t.Context(), "a")
			second <- done
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("one caller has two turns")
		default:
		}
		other, refusal := turns.take(t.Context(), "b")
		if refusal != "" {
			t.Fatal(refusal)
		}
		first()
		(<-second)()
		other()
		if len(turns.callers) != 0 || len(turns.all) != 0 {
			t.Errorf("%d callers and %d turns are left", len(turns.callers), len(turns.all))
		}
	})
}

func TestWhoGoesAwayWaitsNoMoreAndTooManyAreRefused(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		turns := newTurns()
		done, _ := turns.take(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		refusals := make(chan string)
		for range maxKeyDrafts - 1 {
			go func() {
				_, refusal := turns.take(ctx, "a")
				refusals <- refusal
			}()
		}
		synctest.Wait()
		if _, refusal := turns.take(t.Context(), "a"); !strings.Contains(refusal, "16 policy evaluations") {
			t.Errorf("one more is refused with %q", refusal)
		}
		cancel()
		for range maxKeyDrafts - 1 {
			if refusal := <-refusals; refusal == "" {
				t.Error("who went away got a turn")
			}
		}
		done()
		if len(turns.callers) != 0 {
			t.Errorf("%d callers are left", len(turns.callers))
		}
	})
}
