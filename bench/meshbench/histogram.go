package main

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets that are about 1.6 % wide. It is safe
// for concurrent use.
type histogram struct {
	buckets [64 * 64]atomic.Int64 // by bucketOf
	count   atomic.Int64
	max     atomic.Int64 // in microseconds
}

func bucketOf(us int64) int {
	if us < 64 {
		return int(max(us, 0))
	}
	e := bits.Len64(uint64(us)) - 7 // us>>e is in [64,128)
	return (e+1)*64 + int(us>>e) - 64
}

func bucketTop(i int) int64 {
	if i < 64 {
		return int64(i)
	}
	e := i/64 - 1
	return (int64(i%64)+65)<<e - 1
}

func (h *histogram) add(d time.Duration) {
	us := d.Microseconds()
	h.buckets[bucketOf(us)].Add(1)
	h.count.Add(1)
	for old := h.max.Load(); us > old && !h.max.CompareAndSwap(old, us); old = h.max.Load() {
	}
}

// quantile returns a quantile in milliseconds.
func (h *histogram) quantile(q float64) float64 {
	rank := int64(math.Ceil(q * float64(h.count.Load())))
	var seen int64
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); rank > 0 && seen >= rank {
			return round(float64(min(bucketTop(i), h.max.Load()))/1000, 2)
		}
	}
	return 0
}

// put adds p50, p99 and max to r, with the given prefix.
func (h *histogram) put(r result, prefix string) {
	r[prefix+"_p50_ms"] = h.quantile(.5)
	r[prefix+"_p99_ms"] = h.quantile(.99)
	r[prefix+"_max_ms"] = h.quantile(1)
}
