package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// api puts load on the admin API, one path after the other.
func (b *bench) api(ctx context.Context) error {
	transport := &http.Transport{MaxIdleConnsPerHost: b.apiConns, MaxConnsPerHost: b.apiConns, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: b.requestTimeout}
	for _, path := range b.apiPaths {
		b.apiPath(ctx, client, path)
	}
	return ctx.Err()
}

func (b *bench) apiPath(ctx context.Context, client *http.Client, path string) {
	r := b.result("api")
	var latency histogram
	var bytes, failed atomic.Int64
	b.meter.start()
	start := time.Now()
	var connections sync.WaitGroup
	for range b.apiConns {
		connections.Go(func() {
			for time.Since(start) < b.apiFor && ctx.Err() == nil {
				begin := time.Now()
				size, err := b.fetch(ctx, client, path, io.Discard)
				if err != nil {
					failed.Add(1)
					continue
				}
				bytes.Add(size)
				latency.add(time.Since(begin))
			}
		})
	}
	connections.Wait()
	took := time.Since(start)
	b.meter.stop(r)
	answered := latency.count.Load()
	r["path"], r["concurrency"], r["requests"], r["failed"] = path, b.apiConns, answered, failed.Load()
	r["requests_per_s"] = round(float64(answered)/took.Seconds(), 1)
	if answered > 0 {
		r["body_bytes"] = bytes.Load() / answered
		r.cpuPerUnit("server_cpu_ms_per_request", int(answered))
	}
	latency.put(r, "latency")
	b.emit(r, "path", "requests_per_s", "latency_p50_ms", "latency_p99_ms", "body_bytes", "server_cpu_ms_per_request", "failed")
}

func (b *bench) fetch(ctx context.Context, client *http.Client, path string, into io.Writer) (size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Split(b.url, ",")[0]+path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+b.apiKey)
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	size, err = io.Copy(into, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return size, err
}
