package main

import (
	"context"
	"sync"
	"time"
)

// storm cuts the connections of most nodes and makes them reconnect at once. Meanwhile, the others change their endpoints and
// measure how long it takes until they receive each other's changes.
func (b *bench) storm(ctx context.Context, c *cluster) error {
	r := b.result("storm")
	c.settle(ctx, b.quiet, time.Minute)
	stay := max(2, c.size-int(b.stormShare*float64(c.size)))
	leaving := c.members()[stay:]
	for _, n := range leaving {
		n.cut()
	}
	for _, n := range leaving {
		n.running.Wait()
	}
	all := c.expectConvergence()
	c.converged.Store(int64(stay))
	log := c.follow(stay)
	defer c.unfollow()
	var request histogram
	converged := make(chan struct{})
	b.meter.start()
	start := time.Now()
	for _, n := range leaving {
		n.run(ctx)
	}
	var changes sync.WaitGroup
	changes.Go(func() { b.changeUntil(ctx, converged, c, log, &request) })
	err := b.awaitConvergence(ctx, c, r, all, start)
	r["server_cpu_until_converged_s"] = round(b.meter.serverCPU(), 2)
	close(converged)
	changes.Wait()
	for deadline := time.Now().Add(deliveryLimit); log.pending.Load() > 0 && time.Now().Before(deadline); {
		if pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	c.firstMap.Load().put(r, "first_map")
	r["stream_retries"], r["reconnected"], r["stayed"] = c.retries.Load(), len(leaving), stay
	r["changes"], r["incomplete"] = len(log.all), log.pending.Load()
	log.lag.put(r, "lag")
	request.put(r, "request")
	b.settleAndStop(ctx, c, r, start)
	b.emit(r, "converged", "converged_s", "settled_s", "lag_p50_ms", "lag_p99_ms", "lag_max_ms", "first_map_p99_ms", "server_cpu_s",
		"server_peak_rss_mb", "generator_cpu_s", "stream_retries")
	return err
}

// changeUntil makes endpoint changes at the first rate until a channel is closed, and waits for the requests.
func (b *bench) changeUntil(ctx context.Context, end <-chan struct{}, c *cluster, log *changeLog, request *histogram) {
	var updates sync.WaitGroup
	defer updates.Wait()
	for !closes(ctx, end, time.Duration(float64(time.Second)/b.rates[0])) && ctx.Err() == nil {
		n := c.nodes[b.random.IntN(log.among)]
		ch := log.begin(n)
		updates.Go(func() {
			c.noteError("update", n.update(ctx))
			request.add(time.Since(ch.start))
		})
	}
}
