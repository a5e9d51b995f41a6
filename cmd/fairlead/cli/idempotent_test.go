package cli

import (
	"net/http"
	"slices"
	"testing"
)

// dropping drops the responses to the first requests, as many as times. If times is more than
// one, it sends the first part of each response before it drops the connection.
func dropping(times int, next http.Handler, keys *[]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*keys = append(*keys, r.Header.Get("Idempotency-Key"))
		if len(*keys) > times {
			next.ServeHTTP(w, r)
			return
		}
		if times > 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"user`))
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	})
}

func TestChangeWhoseAnswerIsLostIsSentAgainUnderTheSameKey(t *testing.T) {
	var keys []string
	socket, log := listen(t, dropping(1, cannedServer(), &keys))
	r := fairlead(t, socket, []string{"users", "create", "alice"})
	if r.status != 0 || r.stderr.String() != "" {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
	sent := log.requests()
	if len(keys) != 2 || keys[0] != keys[1] || len(keys[0]) < 20 || sent[0].Body == "" || sent[0].Body != sent[1].Body {
		t.Errorf("keys %v, requests %v", keys, sent)
	}
}

func TestChangeIsSentTwiceAtMost(t *testing.T) {
	var keys []string
	socket, _ := listen(t, dropping(9, cannedServer(), &keys))
	if r := fairlead(t, socket, []string{"users", "create", "alice"}); r.status != 1 || len(keys) != 2 {
		t.Errorf("status %d, keys %v, %s", r.status, keys, &r.stderr)
	}
}

func TestEveryChangeHasAKeyOfItsOwnAndNoReadingHasOne(t *testing.T) {
	var keys []string
	socket, _ := listen(t, dropping(0, cannedServer(), &keys))
	fairlead(t, socket, []string{"users", "create", "alice"})
	fairlead(t, socket, []string{"users", "create", "alice"})
	fairlead(t, socket, []string{"users", "list"})
	if len(keys) != 3 || keys[2] != "" || keys[0] == "" || len(slices.Compact(keys)) != 3 {
		t.Errorf("keys %v", keys)
	}
}
