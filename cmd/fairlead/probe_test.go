package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// probeVariable makes this test binary poll an address for some time and print how long
// each response took. Polling from a separate process measures the server, not the
// callers that load it.
const (
	probeVariable = "FAIRLEAD_TEST_PROBE"
	probeEvery    = 5 * time.Millisecond
)

func probe(job string) int {
	var url, lasting string
	if _, err := fmt.Sscan(job, &url, &lasting); err != nil {
		return probeFailed(err)
	}
	limit, err := time.ParseDuration(lasting)
	if err != nil {
		return probeFailed(err)
	}
	var took []time.Duration
	client := http.Client{Timeout: patience}
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(probeEvery) {
		begin := time.Now()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			return probeFailed(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return probeFailed(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return probeFailed(fmt.Errorf("status %d", resp.StatusCode))
		}
		took = append(took, time.Since(begin))
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		return probeFailed(err)
	}
	return 0
}

func probeFailed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
