//go:build !race

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

const (
	writerCount   = 4
	registerCount = 8
	writeEvery    = 200 * time.Millisecond
	readEvery     = 150 * time.Millisecond
	mapEvery      = 250 * time.Millisecond
	writeLimit    = 5 * time.Second // for one attempt
	mapLimit      = 2 * time.Second
	// finishLimit is how long writes are retried after the last fault.
	finishLimit = time.Minute
)

// workload is an administrator who writes through the balancer and reads from every replica, and devices that
// request their map.
type workload struct {
	fleet        *fleet
	prefix       string
	began        time.Time
	availability *chaos.Availability
	registers    []string // IDs of nodes; the register is the note of the node
	crowd        *meshtest.Crowd

	stop   context.CancelFunc // no new requests
	finish context.CancelFunc // no retries either
	wait   sync.WaitGroup

	mu       sync.Mutex
	history  []chaos.Operation // guarded by mu
	created  []chaos.Issue     // guarded by mu
	deleted  map[string]bool   // guarded by mu; users that may have been deleted
	findings []chaos.Finding   // guarded by mu
	newest   int64             // guarded by mu; the highest revision that anybody was told
	answers  map[string]int    // guarded by mu; how attempts to write ended
	writes   []span            // guarded by mu; the writes that succeeded, with their retries, by their end
	races    int               // guarded by mu; single-use keys that two devices used at once
}

// span is a period.
type span struct{ begin, end time.Time }

// slowest returns the longest time until a write succeeded.
func slowest(writes []span) (longest time.Duration) {
	for _, w := range writes {
		longest = max(longest, w.end.Sub(w.begin))
	}
	return longest
}

// startWorkload begins to send requests. Names of users and of requests begin with a prefix that no other workload of the
// fleet has.
func startWorkload(f *fleet, prefix string) *workload {
	f.t.Helper()
	w := &workload{
		fleet: f, prefix: prefix, began: time.Now(), deleted: map[string]bool{}, answers: map[string]int{}, crowd: meshtest.NewCrowd(f.t, f.balancer.URL),
	}
	w.availability = chaos.NewAvailability(w.began)
	for _, n := range f.nodes[:min(registerCount, len(f.nodes))] {
		w.registers = append(w.registers, strconv.FormatInt(int64(n.ID()), 10))
	}
	working, stop := context.WithCancel(context.Background())
	retrying, finish := context.WithCancel(context.Background())
	w.stop, w.finish = stop, finish
	f.t.Cleanup(func() { stop(); finish(); w.wait.Wait() })
	for i := range writerCount {
		key := f.members[0].CLI("apikeys", "create", "--expiration", "365d")
		w.wait.Go(func() { w.writer(working, retrying, i, key) })
	}
	key := f.members[0].CLI("apikeys", "create", "--expiration", "365d")
	for i, m := range f.members {
		w.wait.Go(func() { w.reader(working, writerCount+i, m, key) })
	}
	for i := range 2 {
		probe := w.crowd.Node(fmt.Sprintf("%sprobe-%d", w.prefix, i))
		f.must(probe.Register(f.t.Context(), f.authKey))
		w.wait.Go(func() { w.prober(working, probe) })
	}
	return w
}

func (w *workload) since() int64 { return int64(time.Since(w.began)) }

func (w *workload) found(sort chaos.Sort, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, chaos.Finding{Sort: sort, Text: fmt.Sprintf(format, args...)})
}

// pace calls do at an interval until ctx ends.
func pace(ctx context.Context, every time.Duration, do func(n int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		do(n)
	}
}

// writer changes one thing after the other. It repeats each request until it succeeds.
func (w *workload) writer(working, retrying context.Context, id int, key string) {
	var users []chaos.Issue
	pace(working, writeEvery, func(n int) {
		once := fmt.Sprintf("%s%d-%d", w.prefix, id, n)
		switch draw := rand.IntN(100); {
		case draw < 20:
			if u, ok := w.createUser(retrying, key, once); ok {
				users = append(users, u)
			}
		case draw < 30 && len(users) > 0:
			i := rand.IntN(len(users))
			w.deleteUser(retrying, key, once, users[i])
			users = slices.Delete(users, i, i+1)
		case draw < 40 && id == 0:
			w.race(retrying, key, once)
		default:
			w.setNote(retrying, id, key, once)
		}
	})
}

// attempt is a request to write, and what came of it.
type attempt struct {
	method, path, body, key, once string

	status   int
	answer   string
	revision int64
	tries    int
}

// send repeats a request with its idempotency key until it is answered with a decision.
func (w *workload) send(ctx context.Context, a *attempt) (decided bool) {
	began := time.Now()
	for ctx.Err() == nil {
		a.tries++
		err := w.try(ctx, a)
		outcome := strconv.Itoa(a.status)
		if err != nil {
			outcome = "no response"
		}
		decided = err == nil && a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests
		w.mu.Lock()
		w.answers[outcome]++
		if decided && a.status == http.StatusOK {
			w.writes = append(w.writes, span{began, time.Now()})
		}
		w.mu.Unlock()
		if decided {
			if a.status == http.StatusOK {
				w.availability.Worked(chaos.Writes, time.Now())
			}
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(100*time.Millisecond + rand.N(200*time.Millisecond)):
		}
	}
	return false
}

func (w *workload) try(ctx context.Context, a *attempt) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	res, err := call(ctx, a.method, w.fleet.balancer.URL+a.path, a.body, map[string]string{"Authorization": "Bearer " + a.key, "Idempotency-Key": a.once})
	a.status = 0
	if err != nil {
		return err
	}
	a.status, a.answer, a.revision = res.status, res.text, 0
	if res.status == http.StatusOK {
		a.revision = w.told(res)
	}
	if res.header.Get("Idempotency-Replayed") != "" {
		a.revision = 0
	}
	return nil
}

// told records and returns the revision of a response.
func (w *workload) told(res response) int64 {
	text := res.header.Get("Mesh-Revision")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.found(chaos.Error, "a response has the revision %q", text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest = max(w.newest, revision)
	return revision
}

// call sends one request on a new connection.
func call(ctx context.Context, method, url, body string, header map[string]string) (r response, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Close = true
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, string(text)}, err
}

type response struct {
	status int
	header http.Header
	text   string
}

func (w *workload) setNote(ctx context.Context, id int, key, once string) {
	o := chaos.Operation{Client: id, Register: w.registers[rand.IntN(len(w.registers))], Write: true, Value: once}
	a := attempt{method: http.MethodPut, path: "/api/v1/node/" + o.Register + "/note", body: fmt.Sprintf(`{"text": %q}`, o.Value), key: key, once: once}
	o.Call = w.since()
	decided := w.send(ctx, &a)
	if decided {
		o.Return, o.Revision = w.since(), a.revision
	}
	o.Tries = a.tries
	if decided && a.status != http.StatusOK {
		w.found(chaos.Error, "setting a note was answered with %d: %s", a.status, a.answer)
		o.Return = 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, o)
}

func (w *workload) createUser(ctx context.Context, key, once string) (u chaos.Issue, ok bool) {
	a := attempt{method: http.MethodPost, path: "/api/v1/user", body: fmt.Sprintf(`{"name": "user-%s"}`, once), key: key, once: once}
	if !w.send(ctx, &a) {
		return u, false
	}
	var answer struct{ User chaos.Issue }
	if err := json.Unmarshal([]byte(a.answer), &answer); a.status != http.StatusOK || err != nil || answer.User.ID == "" {
		w.found(chaos.Error, "creating user-%s was answered with %d: %s", once, a.status, a.answer)
		return u, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = append(w.created, answer.User)
	return answer.User, true
}

func (w *workload) deleteUser(ctx context.Context, key, once string, u chaos.Issue) {
	w.mu.Lock()
	w.deleted[u.Name] = true
	w.mu.Unlock()
	a := attempt{method: http.MethodDelete, path: "/api/v1/user/" + u.ID, key: key, once: once}
	if w.send(ctx, &a) && a.status != http.StatusOK {
		w.found(chaos.Lost, "deleting %v, whose creation was acknowledged, was answered with %d: %s", u, a.status, a.answer)
	}
}

// race lets two devices join at once with a key for one.
func (w *workload) race(ctx context.Context, key, once string) {
	a := attempt{method: http.MethodPost, path: "/api/v1/preauthkey", body: `{"user": "fleet"}`, key: key, once: once}
	if !w.send(ctx, &a) || a.status == http.StatusConflict && a.tries > 1 {
		return // created, but the response with the secret was lost
	}
	var answer struct{ PreAuthKey struct{ Key string } }
	if err := json.Unmarshal([]byte(a.answer), &answer); a.status != http.StatusOK || err != nil {
		w.found(chaos.Error, "creating a pre-auth key was answered with %d: %s", a.status, a.answer)
		return
	}
	joined := make([]*meshtest.Node, 2)
	var wait sync.WaitGroup
	for i := range joined {
		wait.Go(func() {
			n := w.crowd.Node(fmt.Sprintf("racer-%s-%d", once, i))
			ctx, cancel := context.WithTimeout(ctx, writeLimit)
			defer cancel()
			defer n.Disconnect()
			if n.Register(ctx, answer.PreAuthKey.Key) == nil {
				joined[i] = n
			}
		})
	}
	wait.Wait()
	joined = slices.DeleteFunc(joined, func(n *meshtest.Node) bool { return n == nil })
	if len(joined) > 1 {
		w.found(chaos.Admitted, "two devices joined with the single-use key of %s", once)
	}
	w.mu.Lock()
	w.races++
	w.mu.Unlock()
	for _, n := range joined {
		ctx, cancel := context.WithTimeout(ctx, writeLimit)
		v, err := meshtest.MapOf(ctx, n)
		cancel()
		n.Disconnect()
		if err == nil {
			a := attempt{method: http.MethodDelete, path: fmt.Sprintf("/api/v1/node/%d", v.Self.ID), key: key, once: once + "-gone"}
			w.send(ctx, &a)
		}
	}
}

// reader reads from one replica, which must have seen everything that anybody was told before.
func (w *workload) reader(ctx context.Context, id int, m *member, key string) {
	pace(ctx, readEvery, func(int) {
		// Before the newest revision is looked up: a response in between would count as earlier than this request.
		o := chaos.Operation{Client: id, Register: w.registers[rand.IntN(len(w.registers))], Call: w.since()}
		w.mu.Lock()
		newest := w.newest
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, writeLimit)
		defer cancel()
		res, err := call(ctx, http.MethodGet, "http://"+m.Addr+"/api/v1/node/"+o.Register, "", map[string]string{
			"Authorization": "Bearer " + key, "Mesh-Min-Revision": strconv.FormatInt(newest, 10),
		})
		if err != nil || res.status >= http.StatusInternalServerError {
			return
		}
		var answer struct {
			Node struct{ Note struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(res.text), &answer); err != nil || res.status != http.StatusOK {
			w.found(chaos.Error, "reading node %s was answered with %d: %s", o.Register, res.status, res.text)
			return
		}
		o.Value, o.Revision, o.Return = answer.Node.Note.Text, w.told(res), w.since()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history = append(w.history, o)
	})
}

// prober requests a map through the balancer.
func (w *workload) prober(ctx context.Context, n *meshtest.Node) {
	pace(ctx, mapEvery, func(int) {
		ctx, cancel := context.WithTimeout(ctx, mapLimit)
		defer cancel()
		_, err := meshtest.MapOf(ctx, n)
		n.Disconnect() // the next request goes to another replica
		if err == nil {
			w.availability.Worked(chaos.Maps, time.Now())
		}
	})
}

// end stops new requests, and waits until every write is decided.
func (w *workload) end() {
	w.stop()
	give := time.AfterFunc(finishLimit, w.finish)
	defer give.Stop()
	w.wait.Wait()
}

// tally describes the attempts to write.
func (w *workload) tally() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(w.answers)) {
		parts = append(parts, fmt.Sprintf("%s: %d", outcome, w.answers[outcome]))
	}
	return strings.Join(parts, ", ")
}
