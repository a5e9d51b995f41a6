package ledger

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	commitSeconds prometheus.Histogram
	batchCommands prometheus.Histogram
	loads         prometheus.Counter
	mismatches    prometheus.Counter
	rewinds       prometheus.Counter
	lostRevisions prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, l *Ledger) *metrics {
	m := &metrics{
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_ledger_commit_duration_seconds", Help: "Duration of transactions, from taking the lock to publishing the change.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		batchCommands: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_ledger_batch_commands", Help: "Number of commands per transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 7),
		}),
		loads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_ledger_loads_total", Help: "Reloads of all tables because the log could not be followed.",
		}),
		mismatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_ledger_digest_mismatches_total", Help: "Times another replica had a different snapshot at the same revision. Must stay zero.",
		}),
		rewinds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_ledger_history_rewinds_total", Help: "Times the database went back to an earlier state, for example after a failover to a lagging standby.",
		}),
		lostRevisions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_ledger_lost_revisions_total", Help: "Acknowledged revisions that were lost when the database went back to an earlier state.",
		}),
	}
	reg.MustRegister(m.commitSeconds, m.batchCommands, m.loads, m.mismatches, m.rewinds, m.lostRevisions,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_ledger_revision", Help: "Newest revision this replica knows."},
			func() float64 { return float64(l.World().Rev) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_clock_offset_seconds", Help: "How far this machine's clock is ahead of the database's clock; negative if it is behind. Zero with SQLite.",
		}, func() float64 { return -l.store.Clock().Ahead.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_clock_lead_seconds", Help: "How far the date of the newest change is ahead of the database's clock; zero if it is not ahead.",
		}, func() float64 { return lead(l.World().At, l.Status().DatabaseTime()).Seconds() }))
	return m
}
