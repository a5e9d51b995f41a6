package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// cluster is the set of virtual nodes, with the state that they share.
type cluster struct {
	target         *target
	authKeys       []string
	visible        [][]int
	requestTimeout time.Duration
	readEvery      int    // of the nodes that reconnect, every so many read their large maps
	runID          string // part of the host names

	size    int     // nodes that take part in convergence
	nodes   []*node // size members, then spares for joins
	spares  []*node // not yet used
	byKey   map[uint64]int
	byID    sync.Map    // the server's node ID to index
	buffers chan []byte // for decompressed maps; few, which bounds the memory for all nodes

	firstMap  atomic.Pointer[histogram]
	lastSeen  atomic.Int64 // arrival of the latest message other than a keep-alive, in Unix nanoseconds
	unread    atomic.Int64 // messages that arrived but are not yet scanned
	retries   atomic.Int64
	changes   atomic.Pointer[changeLog]
	watched   atomic.Pointer[watch]
	changeNum atomic.Int64

	memberships atomic.Pointer[membershipLog]

	converged     atomic.Int64
	lastConverged atomic.Int64 // in Unix nanoseconds
	allConverged  atomic.Pointer[chan struct{}]

	mu     sync.Mutex
	errors map[string]int // guarded by mu
}

// newCluster creates the nodes; nothing is sent yet.
func newCluster(t *target, cfg config, spares int) *cluster {
	c := &cluster{
		target: t, authKeys: cfg.authKeys, visible: cfg.visible, requestTimeout: cfg.requestTimeout, readEvery: cfg.readEvery,
		runID: strconv.FormatInt(time.Now().Unix()%100000, 36),
		size:  cfg.nodes, byKey: map[uint64]int{}, errors: map[string]int{},
		buffers: make(chan []byte, runtime.GOMAXPROCS(0)+1),
	}
	for range cap(c.buffers) {
		c.buffers <- nil
	}
	c.firstMap.Store(new(histogram))
	for i := range cfg.nodes + spares {
		n := newNode(c, i)
		n.peers = make([]uint64, (cfg.nodes+spares+63)/64)
		c.byKey[keyBits([]byte(strings.TrimPrefix(n.key.Public().String(), nodeKeyPrefix)))] = i
		c.nodes = append(c.nodes, n)
	}
	c.spares = c.nodes[cfg.nodes:]
	return c
}

// keyBits returns the first 64 bits of a key given in hexadecimal digits.
func keyBits(digits []byte) (bits uint64) {
	for _, c := range digits[:16] {
		d := c - '0'
		if d > 9 {
			d = c - 'a' + 10
		}
		bits = bits<<4 | uint64(d&15)
	}
	return bits
}

func (c *cluster) indexOf(id int64) (int, bool) {
	v, ok := c.byID.Load(id)
	if !ok {
		return 0, false
	}
	return v.(int), true
}

// members returns the nodes that take part in convergence.
func (c *cluster) members() []*node { return c.nodes[:c.size] }

// expected returns how many peers n must know to be converged.
func (c *cluster) expected(n *node) int {
	if c.visible == nil {
		return c.size - 1
	}
	sum := 0
	for _, k := range c.visible[n.authKey] {
		sum += c.size / len(c.authKeys)
		if k < c.size%len(c.authKeys) {
			sum++
		}
		if k == n.authKey {
			sum--
		}
	}
	return sum
}

// sees reports whether b is a peer of a.
func (c *cluster) sees(a, b *node) bool {
	return c.visible == nil || slices.Contains(c.visible[a.authKey], b.authKey)
}

// observers counts the members, other than b, that see b.
func (c *cluster) observers(b *node) int {
	sum := 0
	for _, a := range c.members() {
		if a != b && c.sees(a, b) {
			sum++
		}
	}
	return sum
}

// cut closes all streams and connections at once, without a closing handshake.
func (c *cluster) cut() {
	for _, n := range c.nodes {
		n.cut()
	}
	for _, n := range c.nodes {
		n.running.Wait()
	}
}

// expectConvergence resets the state and returns a channel that is closed when all members have converged.
func (c *cluster) expectConvergence() <-chan struct{} {
	c.converged.Store(0)
	c.retries.Store(0)
	c.firstMap.Store(new(histogram))
	all := make(chan struct{})
	c.allConverged.Store(&all)
	return all
}

func (c *cluster) noteConverged(at time.Time) {
	c.lastConverged.Store(at.UnixNano())
	if c.converged.Add(1) == int64(c.size) {
		close(*c.allConverged.Load())
	}
}

func (c *cluster) noteError(what string, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	c.mu.Lock()
	c.errors[what+": "+text[:min(len(text), 120)]]++
	c.mu.Unlock()
}

// takeErrors moves the collected errors into r.
func (c *cluster) takeErrors(r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total, samples := 0, map[string]int{}
	for text, count := range c.errors {
		total += count
		if len(samples) < 5 {
			samples[text] = count
		}
	}
	r["errors"] = total
	if total > 0 {
		r["error_samples"] = samples
	}
	clear(c.errors)
}

// noteMessage advances lastSeen. Nodes may call it out of order.
func (c *cluster) noteMessage(at time.Time) {
	v := at.UnixNano()
	for old := c.lastSeen.Load(); v > old && !c.lastSeen.CompareAndSwap(old, v); old = c.lastSeen.Load() {
	}
}

// settle waits until no message other than a keep-alive has arrived for the duration quiet, but for at most
// limit, and returns when the last one arrived.
func (c *cluster) settle(ctx context.Context, quiet, limit time.Duration) (last time.Time, settled bool) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		unread := c.unread.Load()
		last = time.Unix(0, c.lastSeen.Load())
		if unread == 0 && time.Since(last) >= quiet {
			return last, true
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	return time.Unix(0, c.lastSeen.Load()), false
}

// readVisibility reads one line per auth key: the indices of the keys whose
// nodes it sees, separated by spaces.
func readVisibility(path string, keys int) ([][]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var visible [][]int
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		row := []int{}
		for word := range strings.FieldsSeq(lines.Text()) {
			k, err := strconv.Atoi(word)
			if err != nil || k < 0 || k >= keys {
				return nil, fmt.Errorf("%s:%d: %q is not the index of one of %d auth keys", path, len(visible)+1, word, keys)
			}
			row = append(row, k)
		}
		visible = append(visible, row)
	}
	if len(visible) != keys {
		return nil, fmt.Errorf("%s: %d lines for %d auth keys", path, len(visible), keys)
	}
	return visible, lines.Err()
}
