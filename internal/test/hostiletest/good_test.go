//go:build !race

package hostiletest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

const (
	goodNodes = 300
	movers    = 10 // additional nodes, which keep reconnecting
	// behindNginx is how many of the well-behaved nodes connect through the proxy.
	behindNginx = 100
	atOnce      = 40
	patience    = time.Minute
	// slowest is the delay above which a well-behaved node counts as locked out.
	slowest = 2500 * time.Millisecond
)

// mesh is the server under attack with its well-behaved nodes.
type mesh struct {
	*meshtest.Server
	t       *testing.T
	nginx   *meshtest.Nginx
	console string // address
	key     string // pre-auth key that nodes join with
	apiKey  string
	noise   key.MachinePublic
	crowd   *meshtest.Crowd
	nodes   []*meshtest.Node // the nodes whose lag is measured
	movers  []*meshtest.Node
	renames int
	joins   int

	before *figures // measurements without an attack
	rest   state    // resource usage of the server without an attack
}

// gather registers and connects all well-behaved nodes.
func (m *mesh) gather() {
	m.t.Helper()
	direct, proxied := meshtest.NewCrowd(m.t, m.URL), meshtest.NewCrowd(m.t, "http://"+m.nginx.Service)
	m.crowd, m.noise = direct, direct.Key()
	all := make([]*meshtest.Node, goodNodes+movers)
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range all {
		crowd := direct
		if i < behindNginx || i >= goodNodes+movers/2 {
			crowd = proxied
		}
		all[i] = crowd.Node(fmt.Sprintf("good-%d", i))
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := all[i].Register(m.t.Context(), m.key); err != nil {
				m.t.Errorf("%s: %v", all[i].Hostname, err)
			}
			all[i].Connect()
		})
	}
	wait.Wait()
	m.nodes, m.movers = all[:goodNodes], all[goodNodes:]
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*patience)
	defer cancel()
	for _, n := range all {
		if _, err := n.Await(ctx, func(v *meshtest.View) bool { return online(v) == len(all)-1 }); err != nil {
			m.t.Fatal(err)
		}
	}
}

func online(v *meshtest.View) (count int) {
	for _, p := range v.Peers {
		if p.Online {
			count++
		}
	}
	return count
}

// figures holds what well-behaved nodes and operators noticed during an attack.
type figures struct {
	mu     sync.Mutex
	lag    []time.Duration // guarded by mu; time from a change through the API until a node receives it
	back   []time.Duration // guarded by mu; time from a new connection until its map
	join   []time.Duration // guarded by mu; time until a new node is registered
	health []time.Duration // guarded by mu; response times of /health
	faults []string        // guarded by mu; what went wrong
	state  []state         // guarded by mu; of the server's process
}

func (f *figures) add(list *[]time.Duration, since time.Time, at time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.faults = append(f.faults, err.Error())
	}
	*list = append(*list, at.Sub(since))
}

// percentile returns a percentile of the durations, or zero if there are none.
func percentile(of []time.Duration, percent int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[(len(sorted)-1)*percent/100]
}

// state is the resource usage of the server's process.
type state struct {
	at                           time.Time
	rss, heap, goroutines, files float64
	cpu                          float64 // CPU seconds so far
}

// measure runs and measures the well-behaved nodes until ctx ends.
func (m *mesh) measure(ctx context.Context) *figures {
	f := &figures{}
	var wait sync.WaitGroup
	m.joins++
	for every, do := range map[time.Duration]func(){
		40 * time.Millisecond:  func() { m.change(f) },
		50 * time.Millisecond:  func() { m.askHealth(f) },
		150 * time.Millisecond: func() { m.move(f) },
		200 * time.Millisecond: func() { m.look(f) },
	} {
		wait.Go(func() { repeat(ctx, every, do) })
	}
	wait.Go(func() { m.joinOnce(f) })
	wait.Wait()
	return f
}

// repeat calls f until ctx ends, at least once, with pauses.
func repeat(ctx context.Context, pause time.Duration, f func()) {
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// change renames a node through the API and measures the time until all others have seen it.
func (m *mesh) change(f *figures) {
	n := m.nodes[m.renames%len(m.nodes)]
	name := fmt.Sprintf("name-%d", m.renames)
	m.renames++
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	since, id := time.Now(), n.ID()
	if _, err := m.API(ctx, http.MethodPost, fmt.Sprintf("/api/v1/node/%d/rename/%s", id, name), ""); err != nil {
		f.add(&f.lag, since, time.Now(), fmt.Errorf("renaming a node: %w", err))
		return
	}
	for _, other := range m.nodes {
		if other == n {
			continue
		}
		at, err := other.Await(ctx, func(v *meshtest.View) bool { return strings.HasPrefix(v.Peers[id].Name, name+".") })
		if err != nil {
			at = time.Now()
		}
		f.add(&f.lag, since, at, err)
	}
}

// move reconnects a node, as after a change of its network.
func (m *mesh) move(f *figures) {
	n := m.movers[len(f.back)%len(m.movers)]
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	n.Disconnect()
	before := 0
	n.Look(func(v *meshtest.View) { before = v.Maps })
	since := time.Now()
	n.Connect()
	at, err := n.Await(ctx, func(v *meshtest.View) bool { return v.Maps > before })
	if err != nil {
		at = time.Now()
	}
	f.add(&f.back, since, at, err)
}

// joinOnce registers another node, which does not connect.
func (m *mesh) joinOnce(f *figures) {
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	n, since := m.crowd.Node(fmt.Sprintf("new-%d", m.joins)), time.Now()
	err := n.Register(ctx, m.key)
	f.add(&f.join, since, time.Now(), err)
	n.Disconnect()
}

// askHealth requests /health on a new connection, as a load balancer does.
func (m *mesh) askHealth(f *figures) {
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	since := time.Now()
	err := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/health", nil)
		if err != nil {
			return err
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("/health answers %d: %s", res.StatusCode, text)
		}
		return err
	}()
	f.add(&f.health, since, time.Now(), err)
}

// look measures the server's process.
func (m *mesh) look(f *figures) {
	s, err := m.state()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.faults = append(f.faults, err.Error())
		return
	}
	f.state = append(f.state, s)
}

func (m *mesh) state() (s state, err error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	for name, value := range map[string]*float64{
		"go_goroutines": &s.goroutines, "go_memstats_next_gc_bytes": &s.heap, "process_open_fds": &s.files,
		"process_cpu_seconds_total": &s.cpu,
	} {
		if *value, err = m.Metric(ctx, name); err != nil {
			return s, err
		}
	}
	s.at = time.Now()
	s.heap /= 2 // the next collection begins when the heap has doubled
	s.rss, err = residentBytes(m.PID())
	return s, err
}

func residentBytes(pid int) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	return float64(pages * os.Getpagesize()), err
}

// most returns the maximum of each value.
func (f *figures) most() (m state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.state {
		m.rss, m.heap, m.goroutines, m.files = max(m.rss, s.rss), max(m.heap, s.heap), max(m.goroutines, s.goroutines), max(m.files, s.files)
	}
	return m
}

// ended counts the streams of well-behaved nodes that have ended.
func (m *mesh) ended() (count int) {
	for _, n := range m.nodes {
		count += len(n.Ends())
	}
	return count
}
