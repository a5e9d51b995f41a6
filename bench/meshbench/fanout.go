package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	deliveryLimit = 30 * time.Second // for one endpoint change
	noticeLimit   = time.Minute      // for one join, logout or drop
)

// fanout makes single changes, one after the other.
func (b *bench) fanout(ctx context.Context, c *cluster) error {
	if err := b.fanoutEndpoints(ctx, c); err != nil {
		return err
	}
	if err := b.fanoutJoins(ctx, c); err != nil {
		return err
	}
	return b.fanoutDrops(ctx, c)
}

func (b *bench) anyMember(c *cluster) *node { return c.nodes[b.random.IntN(c.size)] }

func (b *bench) fanoutEndpoints(ctx context.Context, c *cluster) error {
	r := b.result("fanout-endpoint")
	log := c.follow()
	defer c.unfollow()
	var request histogram
	lost := 0
	b.meter.start()
	for range b.changes {
		n := b.anyMember(c)
		ch := log.begin(n)
		c.noteError("update", n.update(ctx))
		request.add(time.Since(ch.start))
		if !closes(ctx, ch.done, deliveryLimit) {
			lost++
		}
		// A random pause keeps changes from synchronizing with a server's batching timer.
		if err := pause(ctx, time.Duration(b.random.Int64N(int64(max(b.pause, 1))))); err != nil {
			return err
		}
	}
	b.meter.stop(r)
	r["changes"], r["incomplete"] = b.changes, lost
	log.last.put(r, "last_node")
	log.lag.put(r, "delivery")
	request.put(r, "request")
	r.perUnit("bytes_per_change", "map_bytes", b.changes)
	r.perUnit("wire_bytes_per_change", "wire_bytes", b.changes)
	r.cpuPerUnit("server_cpu_ms_per_change", b.changes)
	c.takeErrors(r)
	b.emit(r, "last_node_p50_ms", "last_node_p99_ms", "last_node_max_ms", "request_p50_ms", "bytes_per_change", "server_cpu_ms_per_change", "incomplete")
	return nil
}

// fanoutJoins makes spare nodes join and log out.
func (b *bench) fanoutJoins(ctx context.Context, c *cluster) error {
	if b.joins == 0 {
		return nil
	}
	r := b.result("fanout-join-leave")
	var join, leave histogram
	lost := 0
	var leaveBytes int64
	note := func(h *histogram, w *watch) {
		if took, ok := w.wait(ctx, noticeLimit); ok {
			h.add(took)
		} else {
			lost++
		}
		c.watched.Store(nil)
	}
	b.meter.start()
	for range b.joins {
		n := c.spares[0]
		c.spares = c.spares[1:]
		w := c.watch(n)
		if err := n.register(ctx); err != nil {
			c.noteError("join", err)
			lost++
			continue
		}
		n.run(ctx)
		note(&join, w)
		c.settle(ctx, 1500*time.Millisecond, 20*time.Second)
		before := c.target.traffic.mapBytes.Load()
		w = c.watch(n)
		c.noteError("logout", n.logout(ctx))
		note(&leave, w)
		n.cut()
		n.running.Wait()
		c.settle(ctx, 1500*time.Millisecond, 20*time.Second)
		leaveBytes += c.target.traffic.mapBytes.Load() - before
	}
	b.meter.stop(r)
	r["cycles"], r["incomplete"] = b.joins, lost
	join.put(r, "join")
	leave.put(r, "leave")
	r["leave_bytes"] = leaveBytes / int64(b.joins)
	r["join_bytes"] = (r["map_bytes"].(int64) - leaveBytes) / int64(b.joins)
	r.cpuPerUnit("server_cpu_ms_per_cycle", b.joins)
	c.takeErrors(r)
	b.emit(r, "join_p50_ms", "join_max_ms", "leave_p50_ms", "leave_max_ms", "join_bytes", "leave_bytes", "server_cpu_ms_per_cycle", "incomplete")
	return ctx.Err()
}

// fanoutDrops makes nodes disappear without closing their connections, and waits until all
// peers have been notified.
func (b *bench) fanoutDrops(ctx context.Context, c *cluster) error {
	if b.drops == 0 {
		return nil
	}
	r := b.result("fanout-drop")
	var drop histogram
	lost := 0
	b.meter.start()
	for range b.drops {
		n := b.anyMember(c)
		w := c.watch(n)
		n.cut()
		n.running.Wait()
		if took, ok := w.wait(ctx, noticeLimit); ok {
			drop.add(took)
		} else {
			lost++
		}
		c.watched.Store(nil)
		n.run(ctx)
		c.settle(ctx, 2*time.Second, 20*time.Second)
	}
	b.meter.stop(r)
	r["drops"], r["incomplete"] = b.drops, lost
	drop.put(r, "drop")
	c.takeErrors(r)
	b.emit(r, "drop_p50_ms", "drop_max_ms", "incomplete")
	return ctx.Err()
}

// churn makes endpoint changes at each rate, whether or not the server keeps up.
func (b *bench) churn(ctx context.Context, c *cluster) error {
	for _, rate := range b.rates {
		if err := b.churnAt(ctx, c, rate); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) churnAt(ctx context.Context, c *cluster, rate float64) error {
	const keepsUp, giveUp = 3 * time.Second, 2 * time.Minute
	r := b.result("churn")
	log := c.follow()
	defer c.unfollow()
	var request histogram
	var failed atomic.Int64
	b.meter.start()
	start := time.Now()
	total := int(rate * b.churnFor.Seconds())
	var updates sync.WaitGroup
	defer updates.Wait()
	for i := range total {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		n := b.anyMember(c)
		ch := log.begin(n)
		updates.Go(func() {
			if !n.updateWithRetries(ctx) {
				failed.Add(1)
			}
			request.add(time.Since(ch.start))
		})
	}
	sent, inTime := time.Since(start), log.delivered.Load()
	updates.Wait()
	for log.pending.Load() > 0 && time.Since(start) < sent+giveUp {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	took := time.Since(start)
	b.meter.stop(r)
	r["rate"], r["duration_s"], r["changes"], r["failed"] = rate, seconds(sent), total, failed.Load()
	r["deliveries"] = log.delivered.Load()
	r["delivered_per_s"] = round(float64(log.delivered.Load())/took.Seconds(), 0)
	r["delivered_in_window_per_s"] = round(float64(inTime)/sent.Seconds(), 0)
	r["drain_s"], r["undelivered_changes"] = seconds(took-sent), log.pending.Load()
	r["keeps_up"] = log.pending.Load() == 0 && took-sent < keepsUp && failed.Load() == 0
	log.lag.put(r, "lag")
	log.last.put(r, "last_node")
	request.put(r, "request")
	c.takeErrors(r)
	b.emit(r, "rate", "delivered_per_s", "lag_p50_ms", "lag_p99_ms", "lag_max_ms", "drain_s", "keeps_up", "request_p99_ms", "map_bytes", "server_cpu_pct")
	return nil
}
