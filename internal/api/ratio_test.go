//go:build !race

package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	ratioCallers = 16
	ratioRound   = time.Second
	ratioRounds  = 3
)

// TestRatioListUsers checks, in one run at concurrency 16, that an authenticated list of
// 25 users reaches at least half the requests per second of a bare handler that writes
// the same bytes, and makes no database queries.
func TestRatioListUsers(t *testing.T) {
	s := sqlite(t).listen()
	for i := range 25 {
		s.call("POST", "/api/v1/user", object{"name": fmt.Sprintf("user%02d", i), "email": fmt.Sprintf("user%02d@example.com", i)}).ok()
	}
	want := s.call("GET", "/api/v1/user", nil)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(want.body)))
		_, _ = w.Write(want.body)
	}))
	defer bare.Close()

	locks, tails, begin := s.store.locks.Load(), s.store.tails.Load(), time.Now()
	var ours, theirs float64
	for range ratioRounds {
		theirs = max(theirs, requestRate(t, bare.URL+"/api/v1/user", s.key, len(want.body)))
		ours = max(ours, requestRate(t, s.url+"/api/v1/user", s.key, len(want.body)))
	}
	t.Logf("requests per second: %.0f, bare handler %.0f, ratio %.2f", ours, theirs, ours/theirs)
	if ours < theirs/2 {
		t.Errorf("the list reaches only %.0f %% of a bare handler", 100*ours/theirs)
	}
	// The ledger itself reads the log once a second.
	if l, n := s.store.locks.Load()-locks, s.store.tails.Load()-tails; l != 0 || n > 1+int64(time.Since(begin)/time.Second) {
		t.Errorf("%d transactions and %d reads of the log in %v", l, n, time.Since(begin))
	}
}

func requestRate(t *testing.T, url, key string, size int) float64 {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: ratioCallers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(t.Context(), ratioRound)
	defer cancel()
	done := make([]int, ratioCallers)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range ratioCallers {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+key)
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.ReadFull(res.Body, buf[:size])
				if err == nil {
					_, err = res.Body.Read(buf[n:])
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK || !errors.Is(err, io.EOF) {
					t.Errorf("status %d, %d of %d bytes: %v", res.StatusCode, n, size, err)
					return
				}
				done[i]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / time.Since(begin).Seconds()
}
