package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// lists measures how fast lists of nodes are returned, in an idle mesh and in one that changes, and how much
// reading them slows down the delivery of changes.
//
// Four kinds of windows take turns: nothing happens, the mesh changes, lists are read, and both. The cost of
// a change is the difference between windows with and without changes, which needs no instrumentation of the
// server: everything that lists make worse for a change (caches, garbage, waiting) counts, and so does what
// changes make worse for lists. Changes that a server sends together are counted individually.
func (b *bench) lists(ctx context.Context, c *cluster) error {
	r := b.result("lists")
	if _, settled := c.settle(ctx, b.quiet, time.Minute); !settled {
		return errors.New("the nodes did not settle")
	}
	log := c.follow()
	defer c.unfollow()
	reader := &listReader{bench: b, client: &http.Client{Timeout: b.requestTimeout, Transport: &http.Transport{
		MaxIdleConnsPerHost: b.apiConns, DisableCompression: true, ReadBufferSize: 256 << 10,
	}}}
	defer reader.client.CloseIdleConnections()
	idle, changed, read, both := &window{}, &window{changes: true}, &window{lists: true}, &window{changes: true, lists: true}
	b.meter.start()
	for range b.listsTurns {
		for _, w := range []*window{idle, changed, read, both} {
			if err := b.listsWindow(ctx, log, reader, w); err != nil {
				return err
			}
		}
	}
	b.meter.stop(r)

	alone := (changed.cpu - changed.seconds*idle.cpuRate()) / float64(changed.told)
	request := (read.cpu - read.seconds*idle.cpuRate()) / float64(read.requests)
	beside := (both.cpu - both.seconds*idle.cpuRate() - float64(both.requests)*request) / float64(both.told)
	r["changes_told"], r["requests"], r["failed"], r["incomplete"] = both.told, both.requests, reader.failed.Load(), log.pending.Load()
	r["idle_cpu_pct"], r["changes_cpu_pct"], r["lists_cpu_pct"], r["both_cpu_pct"] =
		round(100*idle.cpuRate(), 1), round(100*changed.cpuRate(), 1), round(100*read.cpuRate(), 1), round(100*both.cpuRate(), 1)
	r["server_cpu_us_per_told_alone"], r["server_cpu_us_per_told_beside_lists"] = round(1e6*alone, 2), round(1e6*beside, 2)
	r["server_cpu_rise_pct"] = round(100*(beside/alone-1), 1)
	r["server_cpu_ms_per_request"] = round(1e3*request, 3)
	read.whole.put(r, "whole")
	read.paged.put(r, "paged")
	both.whole.put(r, "whole_beside_changes")
	both.paged.put(r, "paged_beside_changes")
	r["whole_bytes"] = reader.bytes.Load() / max(read.whole.count.Load()+both.whole.count.Load(), 1)
	log.lag.put(r, "lag")
	c.takeErrors(r)
	b.emit(r, "paged_p50_ms", "paged_p99_ms", "paged_beside_changes_p99_ms", "whole_p50_ms", "whole_p99_ms", "server_cpu_us_per_told_alone", "server_cpu_us_per_told_beside_lists",
		"server_cpu_rise_pct", "failed")
	return nil
}

// window holds the totals of all windows of one kind.
type window struct {
	changes, lists bool

	cpu, seconds float64
	told         int64 // changes, counted once for each node that received them
	requests     int
	whole, paged histogram // time from when a request was due until its last byte
}

func (w *window) cpuRate() float64 { return w.cpu / w.seconds }

func (b *bench) listsWindow(ctx context.Context, log *changeLog, reader *listReader, w *window) error {
	cpu, told, start := processCPU(b.serverPID), log.delivered.Load(), time.Now()
	var work sync.WaitGroup
	if w.changes {
		work.Go(func() {
			b.everySoOften(ctx, start, b.rates[0], func(time.Time) {
				n := b.anyMember(log.cluster)
				log.begin(n)
				work.Go(func() { log.cluster.noteError("update", n.update(ctx)) })
			})
		})
	}
	if w.lists {
		work.Go(func() {
			b.everySoOften(ctx, start, b.listsRate, func(due time.Time) {
				w.requests++
				whole := w.requests%2 == 0
				work.Go(func() { reader.read(ctx, w, whole, due) })
			})
		})
	}
	err := pause(ctx, b.listsFor)
	work.Wait()
	for err == nil && log.pending.Load() > 0 && time.Since(start) < b.listsFor+deliveryLimit {
		err = pause(ctx, 10*time.Millisecond)
	}
	w.cpu, w.seconds, w.told = w.cpu+processCPU(b.serverPID)-cpu, w.seconds+time.Since(start).Seconds(), w.told+log.delivered.Load()-told
	return err
}

// everySoOften calls do at a fixed rate during one window, even if earlier calls have not finished.
func (b *bench) everySoOften(ctx context.Context, start time.Time, rate float64, do func(due time.Time)) {
	for i := range int(rate * b.listsFor.Seconds()) {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if pause(ctx, time.Until(due)) != nil {
			return
		}
		do(due)
	}
}

// listReader reads the list of nodes, either all of it or the next page.
type listReader struct {
	bench         *bench
	client        *http.Client
	bytes, failed atomic.Int64
	cursor        atomic.Pointer[string]
}

func (l *listReader) read(ctx context.Context, w *window, whole bool, due time.Time) {
	var err error
	if whole {
		var size int64
		if size, err = l.bench.fetch(ctx, l.client, "/api/v1/node", io.Discard); err == nil {
			w.whole.add(time.Since(due))
			l.bytes.Add(size)
		}
	} else {
		cursor := ""
		if c := l.cursor.Load(); c != nil {
			cursor = *c
		}
		var body bytes.Buffer
		if _, err = l.bench.fetch(ctx, l.client, "/api/v1/node?limit=100&cursor="+cursor, &body); err == nil {
			w.paged.add(time.Since(due))
			next := ""
			if _, after, ok := bytes.Cut(body.Bytes(), []byte(`],"next":"`)); ok {
				next = string(bytes.TrimRight(after, "\"}"))
			}
			l.cursor.Store(&next)
		}
	}
	if err != nil {
		l.failed.Add(1)
	}
}
