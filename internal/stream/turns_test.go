package stream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func newSessions(n int) (all []*session) {
	for range n {
		all = append(all, &session{poke: make(chan struct{}, 1)})
	}
	return all
}

// woken returns which of the streams were woken since the last call.
func woken(all []*session) (list []int) {
	for i, s := range all {
		select {
		case <-s.poke:
			list = append(list, i)
		default:
		}
	}
	return list
}

func TestTurnsAreGrantedInOrderAndOnlyAFewAtATime(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		turns, all := &turns{clock: newClock()}, newSessions(maxUpdates+3)
		for _, s := range all {
			turns.request(s)
			turns.request(s) // it is still one turn
		}
		if got := woken(all); len(got) != maxUpdates || got[maxUpdates-1] != maxUpdates-1 {
			t.Fatalf("granted: %v", got)
		}
		turns.leave(all[maxUpdates]) // it has ended while it waited
		turns.giveBack(all[5])
		if got := woken(all); len(got) != 1 || got[0] != maxUpdates+1 {
			t.Errorf("granted after a turn: %v, want the first that has not ended", got)
		}
		turns.leave(all[6]) // it has ended during its turn
		if got := woken(all); len(got) != 1 || got[0] != maxUpdates+2 {
			t.Errorf("granted after a stream ended: %v", got)
		}
		for _, s := range all {
			turns.giveBack(s)
		}
		if turns.busy.Load() || len(turns.taken)+len(turns.waiting) > 0 {
			t.Errorf("left over: %d turns, %d waiting", len(turns.taken), len(turns.waiting))
		}
		turns.request(all[6])
		if woken(all) != nil {
			t.Error("a stream that ended got a turn")
		}
	})
}

func TestStreamThatFallsBehindDuringItsTurnGetsAnother(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		turns, all := &turns{clock: newClock()}, newSessions(1)
		s := all[0]
		turns.request(s)
		woken(all)
		s.behind.Store(&place{})
		turns.request(s) // as when the network changes meanwhile
		turns.giveBack(s)
		if got := woken(all); len(got) != 1 || !s.hasTurn() {
			t.Error("it waits for a change that has happened already")
		}
		s.behind.Store(nil)
		turns.giveBack(s)
		if s.hasTurn() || woken(all) != nil {
			t.Error("it got a turn for nothing")
		}
	})
}

func TestSlowStreamsAreOvertakenAndKeepTheirTurn(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		turns, all := &turns{clock: newClock()}, newSessions(2*maxUpdates)
		for _, s := range all {
			turns.request(s)
		}
		woken(all)
		const slow, full = 3, 4
		all[slow].blocked.Store(-int64(time.Second))
		turns.letPass(all[full])
		if got := woken(all); len(got) != 1 || got[0] != maxUpdates {
			t.Errorf("granted while a full map is sent: %v", got)
		}
		<-time.After(3 * updateLimit)
		synctest.Wait()
		if got := woken(all); len(got) != 1 || got[0] != maxUpdates+1 {
			t.Errorf("granted while one stream waits for its client: %v", got)
		}
		<-time.After(2 * maxTicks * updateLimit)
		synctest.Wait()
		if got := woken(all); len(got) != maxUpdates-2 {
			t.Errorf("granted while all turns are late: %v", got)
		}
		if !all[0].hasTurn() || !all[slow].hasTurn() || !all[full].hasTurn() {
			t.Error("a slow stream lost its turn")
		}
		turns.giveBack(all[0])
		for _, s := range all {
			turns.giveBack(s)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if turns.ticking || len(turns.taken) > 0 {
			t.Error("the timer goes on although nothing waits")
		}
	})
}
