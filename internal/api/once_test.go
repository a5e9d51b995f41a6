package api_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// naming adds a unique Idempotency-Key to each change, and keeps the last request.
type naming struct {
	http.RoundTripper
	n    int
	last *http.Request
	body []byte
}

func (c *naming) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Header.Get("Idempotency-Key") == "" {
		c.n++
		r.Header.Set("Idempotency-Key", fmt.Sprint("request ", c.n))
		c.last, c.body = r, nil
		if r.Body != nil {
			c.body, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(c.body))
		}
	}
	return c.RoundTripper.RoundTrip(r)
}

// again repeats the last change, with more appended to its query.
func (c *naming) again(s *service, more string) *answer {
	u := *c.last.URL
	u.RawQuery += more
	return s.call(c.last.Method, u.RequestURI(), string(c.body),
		"Authorization: "+c.last.Header.Get("Authorization"), "Idempotency-Key: "+c.last.Header.Get("Idempotency-Key"))
}

// secret reports whether an operation returns a secret. Secrets are not stored, so a replay
// cannot return them.
func secret(operation object) bool {
	return slices.Contains([]any{"PreAuthKey", "APIKey", "WebhookSecret", "Invitation", "RelayKey"}, operation["x-replay"])
}

func TestEveryChangeIsDoneOnce(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.listen()
		client := &naming{RoundTripper: s.client.Transport}
		s.client = &http.Client{Transport: client}
		f := populated(t, s)
		doc := readDocument(t)
		ops, calls := doc.operations(), examples(doc)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if replay := ops[name]["x-replay"]; strings.HasPrefix(name, "DELETE") || replay == nil || replay == "none" {
				continue
			}
			t.Run(name, func(t *testing.T) { doneOnce(t, s, client, secret(ops[name]), calls[name](f)) })
		}
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(calls))) {
			if strings.HasPrefix(name, "DELETE") {
				t.Run(name, func(t *testing.T) { doneOnce(t, s, client, false, calls[name](f)) })
			}
		}
	})
}

func doneOnce(t *testing.T, s *service, client *naming, secret bool, first *answer) {
	first.ok()
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Fatal("the first answer is a replay")
	}
	rev := s.ledger.World().Rev
	for range 2 {
		second := client.again(s, "")
		if second.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("no replay: %d %s", second.status, second.body)
		}
		if secret {
			current := second.decoded()["current"].(object)
			if id, _ := current["id"].(string); second.status != http.StatusConflict || id == "" || !strings.Contains(string(second.body), "with id "+id) {
				t.Errorf("status %d: %s", second.status, second.body)
			}
			if key, _ := current["key"].(string); key != "" && !strings.HasSuffix(key, "***") {
				t.Errorf("shows %s", key)
			}
			continue
		}
		if diff := cmp.Diff(first.ok(), second.ok()); diff != "" {
			t.Errorf("answers (-first +second):\n%s", diff)
		}
	}
	client.again(s, "&other=1").fails(409, "Conflict", "this Idempotency-Key was already used for a different request; use a new one for each request", "")
	if now := s.ledger.World().Rev; now != rev {
		t.Errorf("%d revisions for nothing", now-rev)
	}
}

// Machines that register are strangers to each other, so their idempotency keys may collide.
func TestIdempotencyKeyMeansNothingToMachines(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	for n := uint64(1); n <= 2; n++ {
		for range 2 {
			a := s.call("POST", "/api/v1/machine", machine(n, key), noKey, "Idempotency-Key: k")
			if got := a.ok()["node"].(object)["id"]; got != fmt.Sprint(n) || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("machine %d is node %v", n, got)
			}
		}
	}
	if r := slices.Collect(s.ledger.World().Receipts.All()); len(r) != 0 {
		t.Errorf("remembered: %v", r)
	}
}

func TestTwinsCommitOnce(t *testing.T) {
	race := func(t *testing.T, twins ...*service) {
		for i := range 5 {
			body, key := object{"name": fmt.Sprintf("user%d", i)}, fmt.Sprintf("Idempotency-Key: twin %d", i)
			var wg sync.WaitGroup
			var mu sync.Mutex
			replays, ids := 0, map[any]bool{}
			for n := range 32 {
				wg.Go(func() {
					s := twins[n%len(twins)]
					a := s.direct(s.handler, "POST", "/api/v1/user", body, "Authorization: Bearer "+twins[0].key, key)
					mu.Lock()
					defer mu.Unlock()
					if a.header.Get("Idempotency-Replayed") == "true" {
						replays++
					}
					if a.status != http.StatusOK {
						t.Errorf("status %d: %s", a.status, a.body)
						return
					}
					ids[a.decoded()["user"].(object)["id"]] = true
				})
			}
			wg.Wait()
			if replays != 31 || len(ids) != 1 {
				t.Errorf("%d replays, users %v", replays, ids)
			}
		}
		if n := twins[0].ledger.World().Users.Len(); n != 5 {
			t.Errorf("%d users of 5", n)
		}
	}
	t.Run("sqlite", func(t *testing.T) { race(t, sqlite(t)) })
	t.Run("postgres", func(t *testing.T) {
		a, b := replicas(t)
		race(t, a, b)
	})
}

func TestKeyThatFailedIsNotRemembered(t *testing.T) {
	s := sqlite(t)
	const key = "Idempotency-Key: k"
	s.call("POST", "/api/v1/preauthkey", object{"user": "alice"}, key).fails(404, "Not Found", `unknown user "alice"; list users with: fairlead users list`, "")
	s.newUser("alice")
	s.call("POST", "/api/v1/preauthkey", object{"user": "alice"}, key).ok()
}

func TestRequestThatChangedNothingIsRememberedToo(t *testing.T) {
	f := populated(t, sqlite(t))
	path := "/api/v1/node/" + f.node
	f.call("POST", path+"/expire", nil).ok()
	f.call("POST", path+"/expire", nil, "Idempotency-Key: k").ok()
	f.call("POST", path+"/expire", object{"disableExpiry": true}).ok()
	again := f.call("POST", path+"/expire", nil, "Idempotency-Key: k")
	if again.ok()["node"].(object)["expired"] != false || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", again.header, again.body)
	}
}

func TestReplayShowsTheObjectAsItIsNow(t *testing.T) {
	s := sqlite(t)
	create := func() *answer {
		return s.call("POST", "/api/v1/user", object{"name": "alice"}, "Idempotency-Key: k")
	}
	id := create().ok()["user"].(object)["id"].(string)
	s.call("POST", "/api/v1/user/alice/rename/bob", nil).ok()
	if name := create().ok()["user"].(object)["name"]; name != "bob" {
		t.Errorf("name %v", name)
	}
	s.call("DELETE", "/api/v1/user/"+id, nil).ok()
	gone := create()
	if gone.status != http.StatusGone || gone.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("status %d: %s", gone.status, gone.body)
	}
	s.newUser("alice") // the name is free, so the replay did not create the user again
}

func TestKeysOfTwoCallersDoNotMeet(t *testing.T) {
	s := sqlite(t)
	_, other := s.newKey()
	const key = "Idempotency-Key: k"
	s.call("POST", "/api/v1/user", object{"name": "alice"}, key).ok()
	s.call("POST", "/api/v1/user", object{"name": "bob"}, key, "Authorization: Bearer "+other).ok()
	s.direct(s.local, "POST", "/api/v1/user", object{"name": "carol"}, key).ok()
}

func TestSameKeyForAnotherRequestIsAConflict(t *testing.T) {
	s := sqlite(t)
	const key = "Idempotency-Key: k"
	s.call("POST", "/api/v1/user", object{"name": "alice"}, key).ok()
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/api/v1/user", object{"name": "bob"}},
		{"POST", "/api/v1/user?really=yes", object{"name": "alice"}},
		{"DELETE", "/api/v1/user/alice", nil},
		{"DELETE", "/api/v1/user/nobody", nil},
		{"POST", "/api/v1/preauthkey", object{"user": "alice"}},
	} {
		s.call(c.method, c.path, c.body, key).fails(409, "Conflict", "this Idempotency-Key was already used for a different request; use a new one for each request", "")
	}
}

func TestMalformedIdempotencyKeyIsABadRequest(t *testing.T) {
	s := sqlite(t)
	for _, keys := range [][]string{{""}, {strings.Repeat("k", 256)}, {"a\tb"}, {"a\x00b"}, {"a\u0085b"}, {"a", "b"}} {
		a := s.direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header["Idempotency-Key"] = keys
			s.handler.ServeHTTP(w, r)
		}), "POST", "/api/v1/user", object{"name": "alice"})
		a.fails(400, "Bad Request", "Idempotency-Key must be a single value of 1 to 255 bytes without control characters", "Idempotency-Key")
	}
	s.call("POST", "/api/v1/user", object{"name": "alice"}, "Idempotency-Key: "+strings.Repeat("k", 255)).ok()
	s.call("GET", "/api/v1/user", nil, "Idempotency-Key: "+strings.Repeat("k", 256)).ok() // ignored for GET
}

func TestExpiryOfManyNodesIsRememberedWhenItIsComplete(t *testing.T) {
	s := crowded(t, 1)
	expire := func() object {
		return s.call("POST", "/api/v1/node/expire", object{"all": true}, "Idempotency-Key: k").ok()
	}
	first := expire()
	if first["expired"] != 1000.0 {
		t.Fatal(first)
	}
	if diff := cmp.Diff(first, expire()); diff != "" {
		t.Error(diff)
	}
}
