// Package fence keeps a replica that lost the database from serving outdated state. Such a
// replica asks the others whether they still have the database. While one of them does, the fence
// is closed: the replica refuses API keys and clients, and sends its clients to other replicas.
// While none does, it serves the state it has.
//
// The package does not know what is refused, or how: callers use Closed and Leave. Replicas
// authenticate to each other with a key that all of them share.
package fence

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

// Peer is another replica.
type Peer struct {
	ID  string
	URL string // where it can be reached; empty if it has not published one
}

// Config configures a Fence. All fields except Times are required.
type Config struct {
	Self string // the id of this replica
	// Fresh returns how up to date this replica is.
	Fresh func() ledger.Freshness
	// State identifies the state of this replica: replicas with the same state serve the same
	// data.
	State func() string
	// Peers returns the other replicas that were alive according to the last successful
	// heartbeat.
	Peers func() []Peer
	// CutOff reports whether the database has been unreachable for so long that
	// clients may be better off on another replica, even if no replica is known
	// to have the database.
	CutOff     func() bool
	Key        *identity.ReplicaKey
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Times      Times
}

// Times are the intervals of a fence. Zero values mean the defaults.
type Times struct {
	AskAfter   time.Duration // time without the database before others are asked; default 8s
	CloseAfter time.Duration // time without the database before the fence may close; default 10s
	AskEvery   time.Duration // time between two rounds of questions; default 2s
	AnswerIn   time.Duration // time for a peer to answer; default 1.5s
	// SteadyFor is how long another replica must have had the database before it
	// counts; the default is 6s. After an outage, a replica that reconnects a moment
	// later than the others therefore keeps its clients.
	SteadyFor time.Duration
	// HoldFor is how long the fence stays closed when a replica that had the database stops
	// answering; the default is 30s. A restart takes less time.
	HoldFor time.Duration
	// VerifyEvery is how often a healthy replica checks that it reaches the others, so that
	// administrators learn of problems before an outage; the default is 30s.
	VerifyEvery time.Duration
}

func (t Times) orDefault() Times {
	return Times{
		AskAfter: cmp.Or(t.AskAfter, 8*time.Second), CloseAfter: cmp.Or(t.CloseAfter, 10*time.Second),
		AskEvery: cmp.Or(t.AskEvery, 2*time.Second), AnswerIn: cmp.Or(t.AnswerIn, 1500*time.Millisecond),
		SteadyFor: cmp.Or(t.SteadyFor, 6*time.Second), HoldFor: cmp.Or(t.HoldFor, 30*time.Second),
		VerifyEvery: cmp.Or(t.VerifyEvery, 30*time.Second),
	}
}

// Fence is the fence of one replica.
type Fence struct {
	config   Config
	times    Times
	http     asker
	verdict  atomic.Pointer[verdict]
	claims   claims // only Run uses it
	silences silences
}

// New returns an open fence. Run asks the other replicas.
func New(c Config) *Fence {
	f := &Fence{config: c, times: c.Times.orDefault()}
	f.http = newAsker(f.times.AnswerIn)
	c.Registerer.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_replica_fenced", Help: "1 while this replica rejects API keys and clients because it cannot reach the database but another replica can.",
		}, func() float64 { return number(f.Closed()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_replica_unreachable_peers", Help: "Replicas that failed to respond to this one at least twice in a row, or whose release is too old to respond.",
		}, func() float64 { return float64(len(f.Unreachable())) }),
	)
	return f
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Closed reports whether this replica must not serve its state because others may have
// changed it. It is cheap, and correct as soon as a paused process resumes: from then
// on the fence is closed until the log has been read or the other replicas have been
// asked.
func (f *Fence) Closed() bool {
	now, fresh := time.Now(), f.config.Fresh()
	if fresh.Paused.IsZero() && now.Sub(fresh.Last) < f.times.CloseAfter || len(f.config.Peers()) == 0 {
		return false
	}
	v := f.verdict.Load()
	// Without a recent verdict no replica was asked, because the process was paused.
	return !f.counts(v, now) || v.at.Before(fresh.Paused) || v.where == elsewhere
}

// counts reports whether a verdict is recent enough.
func (f *Fence) counts(v *verdict, now time.Time) bool {
	return v != nil && now.Sub(v.at) < f.times.CloseAfter
}

// lost reports whether the others must be asked, because this replica may have lost the database.
func (f *Fence) lost(fresh ledger.Freshness) bool {
	return !fresh.Paused.IsZero() || time.Since(fresh.Last) >= f.times.AskAfter
}

// Leave reports whether clients should be sent to other replicas.
func (f *Fence) Leave() bool {
	v := f.verdict.Load()
	switch {
	case !f.counts(v, time.Now()):
		return false
	case v.where == unknown:
		return f.config.CutOff()
	}
	return v.rounds >= sureAfter && f.Closed()
}

// Run asks the other replicas when necessary, until ctx ends.
func (f *Fence) Run(ctx context.Context) error {
	var asked time.Time
	closed := false
	return periodic.Run(ctx, f.times.AskEvery/8, func() {
		due := f.times.VerifyEvery
		if f.lost(f.config.Fresh()) {
			due = f.times.AskEvery
		}
		if time.Since(asked) >= due {
			asked = time.Now()
			f.verdict.Store(f.ask(ctx))
		}
		if was := closed; f.Closed() != was {
			closed = !was
			f.logState(closed)
		}
	})
}

// logState logs that the fence closed or opened.
func (f *Fence) logState(closed bool) {
	if closed {
		f.config.Log.Error("replica fenced: rejecting API keys and clients, because it cannot reach the database but another replica can",
			"last", time.Since(f.config.Fresh().Last).Round(time.Second).String())
		return
	}
	f.config.Log.Info("replica no longer fenced")
}

// ask asks all peers at once.
func (f *Fence) ask(ctx context.Context) *verdict {
	peers, fresh := f.config.Peers(), f.config.Fresh()
	peers = peers[:min(len(peers), maxPeers)]
	at := time.Now() // after fresh was read, because a later pause makes the verdict invalid
	answers := make([]*answer, len(peers))
	var wait sync.WaitGroup
	for i, p := range peers {
		wait.Go(func() {
			var err error
			if answers[i], err = f.http.ask(ctx, f.config.Key, p); err != nil {
				f.config.Log.Debug("replica does not answer", "replica", p.ID, "url", p.URL, "error", err)
			}
		})
	}
	wait.Wait()
	f.dropMisdirected(peers, answers)
	for _, p := range f.silences.note(peers, answers) {
		f.config.Log.Warn("cannot reach another replica; if this one loses its database connection, it cannot tell whether to fence itself",
			"replica", p.ID, "url", p.URL, "reason", p.problem())
	}
	return f.judge(at, fresh, peers, answers)
}

// dropMisdirected removes answers that did not come from the peer that was
// asked: those of this replica itself, of other known peers, and any further
// answer of one replica. An ID that is not known yet is accepted once: the peer
// has restarted.
func (f *Fence) dropMisdirected(peers []Peer, answers []*answer) {
	taken := map[string]bool{f.config.Self: true}
	for _, p := range peers {
		taken[p.ID] = true
	}
	for i, p := range peers {
		switch a := answers[i]; {
		case a == nil || a.Replica == p.ID:
		case taken[a.Replica]:
			answers[i] = nil
			f.config.Log.Debug("a different replica answers at this URL", "replica", p.ID, "url", p.URL, "answered", a.Replica)
		default:
			taken[a.Replica] = true
		}
	}
}
