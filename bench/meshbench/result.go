package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// result is the outcome of one scenario.
type result map[string]any

func (b *bench) result(scenario string) result {
	return result{"scenario": scenario, "n": b.nodes, "label": b.label, "url": b.url}
}

// emit writes the result as a line of JSON and as a table that starts with the named fields.
func (b *bench) emit(r result, first ...string) {
	line, err := json.Marshal(r)
	if err != nil {
		line = []byte(err.Error())
	}
	fmt.Fprintf(b.out, "%s\n", line)
	fmt.Fprintf(b.log, "── %v  n=%v  %v\n", r["scenario"], r["n"], r["label"])
	shown := map[string]bool{"scenario": true, "n": true, "label": true, "url": true}
	for _, k := range slices.Concat(first, slices.Sorted(maps.Keys(r))) {
		if v, ok := r[k]; ok && !shown[k] {
			shown[k] = true
			fmt.Fprintf(b.log, "   %-28s %v\n", k, v)
		}
	}
}

// perUnit sets r[name] to r[of] divided by units.
func (r result) perUnit(name, of string, units int) { r[name] = r[of].(int64) / int64(units) }

// cpuPerUnit sets r[name] to the server's CPU time per unit in milliseconds, if it was
// measured.
func (r result) cpuPerUnit(name string, units int) {
	if cpu, ok := r["server_cpu_s"].(float64); ok {
		r[name] = round(1000*cpu/float64(units), 3)
	}
}

func seconds(d time.Duration) float64 { return round(d.Seconds(), 3) }

func round(f float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(f*p) / p
}
