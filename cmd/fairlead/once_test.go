package main_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// forgetful is a proxy that drops the first response to each change.
func forgetful(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			mu.Lock()
			defer mu.Unlock()
			key := r.Request.Header.Get("Idempotency-Key")
			if first := !seen[key]; first && key != "" {
				seen[key] = true
				return errors.New("lost")
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL
}

func TestCommandWhoseAnswerIsLostHappensOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		global := []string{"--server", forgetful(t, "http://"+p.api), "--api-key", newKey(t, s)}
		far := func(args ...string) result { return command(t, s, append(global, args...)...) }
		for _, line := range []string{"users create alice", "users create bob", "users rename alice carol", "users delete bob --force"} {
			if r := far(strings.Fields(line)...); r.status != 0 || r.stderr != "" {
				t.Errorf("%s: %+v", line, r)
			}
		}
		if got := mustCommand(t, s, "users", "list", "--output", "json"); strings.Count(got, `"id"`) != 1 || !strings.Contains(got, `"carol"`) {
			t.Errorf("users %s", got)
		}
		r := far("preauthkeys", "create", "--user", "carol")
		says(t, r.stderr, "this request already created the pre-auth key with id 1, whose value was shown only once")
		if got := mustCommand(t, s, "preauthkeys", "list", "--output", "json"); r.status != 1 || strings.Count(got, `"key"`) != 1 {
			t.Errorf("status %d, keys %s", r.status, got)
		}
	})
}
