package control_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestWaitingClientIsToldToComeAgain(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		c := control.New(control.Config{
			Ledger: s.ledger, History: s.history, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
			Logins: identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1))), ServerURL: "https://mesh.example.com/",
		})
		j := control.Joining{Proven: true, MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(1)}
		ask := func() (string, time.Duration) {
			t.Helper()
			start := time.Now()
			out, err := c.Joins.Join(t.Context(), mesh.Actor{}, j)
			if err != nil {
				t.Fatal(err)
			}
			return out.Link, time.Since(start)
		}
		link, took := ask()
		if took > time.Second {
			t.Errorf("the link took %v", took)
		}
		j.Followup = link
		waits := map[time.Duration]bool{}
		for range 10 {
			again, took := ask()
			waits[took] = true
			if again != link || took < 3*time.Minute || took > 4*time.Minute+time.Second {
				t.Errorf("%s after %v", again, took)
			}
		}
		if len(waits) < 5 {
			t.Error("all clients come again at the same time")
		}
		<-time.After(time.Hour)
		if fresh, took := ask(); fresh == link || took > time.Second {
			t.Errorf("an expired link is waited for: %s after %v", fresh, took)
		}
		if n := len(c.Logins.Waiting()); n != 0 {
			t.Errorf("%d devices wait", n)
		}
	})
}

func TestClientForWhomThereIsNoRoomGetsItsLinkAtOnce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for i := range uint64(64) {
			d := arrive(t, s, 1000+i)
			wg.Go(func() { _, _ = s.Joins.Join(ctx, mesh.Actor{Addr: "192.0.2.7"}, d.ask) })
		}
		synctest.Wait()
		d, start := arrive(t, s, 1), time.Now()
		out, err := s.Joins.Join(ctx, mesh.Actor{Addr: "192.0.2.7"}, d.ask)
		if took := time.Since(start); err != nil || out.Link != d.link || took > time.Second {
			t.Errorf("%+v, %v after %v", out, err, took)
		}
	})
}

func TestAnswerThatHasEndedIsNone(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t) // no sweeper is running
		put(t, s)
		d := arrive(t, s, 1)
		if _, _, err := s.Logins.Approve(t.Context(), admin, "alice", d.link); err != nil {
			t.Fatal(err)
		}
		<-time.After(16 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			if out, err := s.Joins.Join(ctx, mesh.Actor{}, d.ask); err == nil {
				t.Errorf("the device was sent away: %+v", out)
			}
		})
		synctest.Wait()
		if n := len(s.Logins.Pending()); n != 1 {
			t.Errorf("%d devices are pending", n)
		}
	})
}
