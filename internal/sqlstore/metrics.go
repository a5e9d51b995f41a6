package sqlstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

func newDurations() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "mesh_db_query_duration_seconds",
		Help: "Duration of SQL statements.",
		// The bounds include 1 s, which is our service level objective.
		Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5},
	})
}

func newRefusals() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mesh_db_stale_primary_refusals_total",
		Help: "Connections refused because the PostgreSQL server was an old primary: on an older timeline than this replica had seen.",
	})
}

type poolStat struct{ open, idle, max int }

// register registers the metrics of an open store.
func register(reg prometheus.Registerer, durations prometheus.Histogram, refusals prometheus.Counter, stat func() poolStat) {
	gauge := func(name, help string, value func(poolStat) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(stat())) })
	}
	reg.MustRegister(
		durations, refusals,
		gauge("mesh_db_connections_open", "Open connections in the pool.", func(s poolStat) int { return s.open }),
		gauge("mesh_db_connections_idle", "Idle connections in the pool.", func(s poolStat) int { return s.idle }),
		gauge("mesh_db_max_open_connections", "Maximum number of open connections in the pool.", func(s poolStat) int { return s.max }),
	)
}

// tracer times every statement that pgx sends. The time of a statement within a batch starts at the response
// to the one before.
type tracer struct{ durations prometheus.Histogram }

type startKey struct{}

func (t tracer) begin(ctx context.Context) context.Context {
	now := time.Now()
	return context.WithValue(ctx, startKey{}, &now)
}

func (t tracer) observe(ctx context.Context) {
	if last, ok := ctx.Value(startKey{}).(*time.Time); ok {
		t.durations.Observe(time.Since(*last).Seconds())
		*last = time.Now()
	}
}

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return t.begin(ctx)
}

func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	t.observe(ctx)
}

func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return t.begin(ctx)
}

func (t tracer) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchQueryData) {
	t.observe(ctx)
}

func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
