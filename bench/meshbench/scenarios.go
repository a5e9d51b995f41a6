package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// register makes all nodes join and returns when each knows all its peers.
func (b *bench) register(ctx context.Context, c *cluster) error {
	r := b.result("register")
	all := c.expectConvergence()
	b.meter.start()
	start := time.Now()
	latency, failed := b.registerAll(ctx, c, start)
	took := time.Since(start)
	r["register_server_cpu_s"] = round(b.meter.serverCPU(), 2)
	if b.registerFirst {
		b.openStreams(ctx, c, start)
	}
	r["register_first"], r["concurrency"], r["failed"] = b.registerFirst, b.concurrency, failed
	r["register_s"] = seconds(took)
	r["register_per_s"] = round(float64(latency.count.Load())/took.Seconds(), 1)
	latency.put(r, "register")
	err := b.awaitConvergence(ctx, c, r, all, start)
	c.firstMap.Load().put(r, "first_map")
	r["stream_retries"] = c.retries.Load()
	b.settleAndStop(ctx, c, r, start)
	b.emit(r, "register_per_s", "register_p50_ms", "register_p99_ms", "first_map_p50_ms", "first_map_p99_ms", "converged", "converged_s",
		"settled_s", "map_bytes", "map_messages", "server_cpu_s", "generator_cpu_s")
	return err
}

func (b *bench) registerAll(ctx context.Context, c *cluster, start time.Time) (latency *histogram, failed int64) {
	latency = new(histogram)
	var failures atomic.Int64
	next := make(chan *node)
	var workers sync.WaitGroup
	for range b.concurrency {
		workers.Go(func() {
			for n := range next {
				switch {
				case !b.registerNode(ctx, n, start, latency):
					failures.Add(1)
				case b.registerFirst:
					c.noteError("update", n.update(ctx))
					n.disconnect() // a server may close connections that are idle for long
				default:
					n.run(ctx)
				}
			}
		})
	}
	for _, n := range c.members() {
		next <- n
	}
	close(next)
	workers.Wait()
	return latency, failures.Load()
}

func (b *bench) registerNode(ctx context.Context, n *node, start time.Time, latency *histogram) bool {
	for range 5 {
		begin := time.Now()
		err := n.register(ctx)
		if err == nil {
			latency.add(time.Since(begin))
			return true
		}
		n.cluster.noteError("register", err)
		n.giveUp()
		if time.Since(start) > b.stepLimit || pause(ctx, time.Second) != nil {
			return false
		}
	}
	return false
}

// openStreams opens the streams of registered nodes. At most concurrency of them wait for their first map, so
// that the machine keeps up with reading.
func (b *bench) openStreams(ctx context.Context, c *cluster, start time.Time) {
	for i, n := range c.members() {
		for int64(i)-c.firstMap.Load().count.Load()+c.unread.Load() >= int64(b.concurrency) {
			if time.Since(start) > b.stepLimit || pause(ctx, time.Millisecond) != nil {
				return
			}
		}
		n.run(ctx)
	}
}

// awaitConvergence waits until all nodes have converged. It fails if that takes longer than stepLimit.
func (b *bench) awaitConvergence(ctx context.Context, c *cluster, r result, all <-chan struct{}, start time.Time) error {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for time.Since(start) < b.stepLimit {
		select {
		case <-all:
			r["converged"] = true
			r["converged_s"] = seconds(time.Unix(0, c.lastConverged.Load()).Sub(start))
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			b.progress("%d of %d nodes converged after %.0f s, %d retries", c.converged.Load(), c.size, time.Since(start).Seconds(), c.retries.Load())
		}
	}
	r["converged"] = false
	r["converged_nodes"] = c.converged.Load()
	r["gave_up_after_s"] = seconds(time.Since(start))
	return fmt.Errorf("%d of %d nodes converged within %v", c.converged.Load(), c.size, b.stepLimit)
}

// settleAndStop waits until the nodes are settled and ends the measurement.
func (b *bench) settleAndStop(ctx context.Context, c *cluster, r result, start time.Time) {
	last, settled := c.settle(ctx, b.quiet, time.Minute)
	r["settled_s"], r["settled"] = seconds(last.Sub(start)), settled
	b.meter.stop(r)
	c.takeErrors(r)
}

// idle measures connected nodes that do nothing.
func (b *bench) idle(ctx context.Context, c *cluster) error {
	r := b.result("idle")
	if _, settled := c.settle(ctx, max(b.quiet, b.idleAfter), time.Minute); !settled {
		return errors.New("the nodes did not settle")
	}
	b.meter.start()
	if err := pause(ctx, b.idleFor); err != nil {
		return err
	}
	b.meter.stop(r)
	rss, _ := residentKiB(b.serverPID)
	r["rss_empty_mb"] = round(float64(b.emptyRSS)/1024, 1)
	r["rss_per_node_kb"] = round(float64(rss-b.emptyRSS)/float64(c.size), 1)
	c.takeErrors(r)
	b.emit(r, "server_cpu_pct", "rss_per_node_kb", "server_rss_mb", "rss_empty_mb")
	return nil
}

// reconnect cuts all connections and makes all nodes reconnect at once.
func (b *bench) reconnect(ctx context.Context, c *cluster) error {
	r := b.result("reconnect")
	c.settle(ctx, b.quiet, time.Minute)
	c.cut()
	all := c.expectConvergence()
	seen := c.target.traffic
	bytes, json := seen.mapBytes.Load(), seen.jsonBytes.Load()
	b.meter.start()
	start := time.Now()
	for _, n := range c.members() {
		n.run(ctx)
	}
	err := b.awaitConvergence(ctx, c, r, all, start)
	r["bytes_until_converged"] = seen.mapBytes.Load() - bytes
	r["server_cpu_until_converged_s"] = round(b.meter.serverCPU(), 2)
	c.firstMap.Load().put(r, "first_map")
	r["stream_retries"] = c.retries.Load()
	b.settleAndStop(ctx, c, r, start)
	r["json_bytes"] = seen.jsonBytes.Load() - json
	b.emit(r, "converged", "converged_s", "first_map_p50_ms", "first_map_p99_ms", "bytes_until_converged", "json_bytes",
		"server_cpu_until_converged_s", "generator_cpu_s", "server_peak_rss_mb", "stream_retries")
	return err
}
