package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"
)

const (
	maxMessage = 256 << 20
	maxText    = 1 << 30 // a decompressed message
	largeMap   = 32 << 10
	homeRegion = 999
	// watchdogTimeout is how long a Tailscale client waits for a message on its stream, including the first one.
	watchdogTimeout = 2 * time.Minute
)

// node is one virtual node: keys, one connection, and a record of the peers it has received.
type node struct {
	cluster *cluster
	index   int // position in cluster.nodes
	authKey int // which auth key it registers with
	machine key.MachinePrivate
	key     key.NodePrivate
	disco   key.DiscoPublic
	host    *tailcfg.Hostinfo

	id      atomic.Int64 // the server's ID for this node, once known
	change  atomic.Int64 // number of the change in its endpoints, 0 for none
	updated atomic.Bool  // an update succeeded since the registration

	updating sync.Mutex // held during an update, because clients send one after the other

	stop    context.CancelFunc // stops the running stream; nil if there was none
	running sync.WaitGroup

	mu   sync.Mutex
	link *link // guarded by mu; nil if not connected
	turn int   // guarded by mu; which replica to dial

	picture // written only by the running stream
}

// picture is what a node has received.
type picture struct {
	peers     []uint64 // one bit per node of the cluster
	peerCount int
	wanted    int // peers needed to be converged
	fullSeen  bool
	mapped    bool // whether the peers have arrived on the current stream
	converged bool
	arrived   time.Time // when the message being scanned was complete
	keepAlive bool      // whether it is a keep-alive
	message   []byte    // a buffer
	watchdog  *time.Timer
}

// errSilent is the error of a stream that received no message for watchdogTimeout.
var errSilent = fmt.Errorf("no message for %v", watchdogTimeout)

func newNode(c *cluster, index int) *node {
	return &node{
		cluster: c, index: index, turn: index / len(c.authKeys), authKey: index % len(c.authKeys),
		machine: key.NewMachine(), key: key.NewNode(), disco: key.NewDisco().Public(),
		host: &tailcfg.Hostinfo{
			IPNVersion: "1.102.5-t0000000", OS: "linux", OSVersion: "6.1.0", Distro: "debian",
			DistroVersion: "12", DistroCodeName: "bookworm", GoArch: "amd64", GoVersion: "go1.26",
			Machine: "x86_64", BackendLogID: fmt.Sprintf("%064x", index+1),
			Hostname: fmt.Sprintf("mb-%s-%05d", c.runID, index),
			Services: []tailcfg.Service{{Proto: tailcfg.PeerAPI4, Port: 40000}, {Proto: tailcfg.PeerAPI6, Port: 40000}},
			NetInfo:  &tailcfg.NetInfo{PreferredDERP: homeRegion, WorkingUDP: "true", WorkingIPv6: "false", MappingVariesByDestIP: "false"},
		},
	}
}

// endpoints returns the node's current endpoints. Two are fixed; a third, present after the first change,
// contains the number of the change in its address and port.
func (n *node) endpoints() ([]netip.AddrPort, []tailcfg.EndpointType) {
	hi, lo := byte(n.index>>8), byte(n.index)
	endpoints := []netip.AddrPort{
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, hi, lo}), 41641),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, hi, lo}), uint16(1024+n.index%60000)),
	}
	types := []tailcfg.EndpointType{tailcfg.EndpointLocal, tailcfg.EndpointSTUN}
	if c := n.change.Load(); c != 0 {
		endpoints = append(endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, byte(c >> 16), byte(c >> 8)}), uint16(20000+c&0xff)))
		types = append(types, tailcfg.EndpointLocal)
	}
	return endpoints, types
}

// nextChange finds the next endpoint in b that contains a change, and returns its number and the rest of b
// after it. An empty rest means that none was found.
func nextChange(b []byte) (number int64, rest []byte) {
	const prefix = `"10.99.`
	i := bytes.Index(b, []byte(prefix))
	if i < 0 {
		return 0, nil
	}
	b = b[i+len(prefix):]
	hi, j := readInt(b, 0)
	if j >= len(b) {
		return 0, nil
	}
	mid, k := readInt(b, j+1)
	if k >= len(b) {
		return 0, nil
	}
	port, end := readInt(b, k+1)
	return hi<<16 | mid<<8 | (port - 20000), b[end:]
}

func (n *node) post(ctx context.Context, path string, body any) (*http.Response, error) {
	l, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+n.cluster.target.base.Host+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := l.client.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return nil, fmt.Errorf("%s: %s: %s", path, res.Status, bytes.TrimSpace(text))
	}
	return res, nil
}

// connect dials if there is no connection yet.
func (n *node) connect(ctx context.Context) (*link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil {
		return n.link, nil
	}
	l, err := n.cluster.target.dial(ctx, n.machine, n.cluster.target.source(n.index), n.turn)
	if err != nil {
		return nil, err
	}
	n.link = l
	return l, nil
}

func (n *node) disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil {
		n.link.close()
		n.link = nil
	}
}

// giveUp closes the connection, so that the next one is to another replica. Neighbors of a node go to different ones.
func (n *node) giveUp() {
	n.disconnect()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turn += 1 + n.index%max(1, len(n.cluster.target.addrs)-1)
}

// register registers the node with its auth key.
func (n *node) register(ctx context.Context) error {
	answer, err := n.sendRegister(ctx, tailcfg.RegisterRequest{
		Auth: &tailcfg.RegisterResponseAuth{AuthKey: n.cluster.authKeys[n.authKey]},
	})
	if err == nil && !answer.MachineAuthorized {
		err = errors.New("registered but not authorized")
	}
	n.updated.Store(false)
	return err
}

// logout expires the node's key at once.
func (n *node) logout(ctx context.Context) error {
	_, err := n.sendRegister(ctx, tailcfg.RegisterRequest{Expiry: time.Unix(123, 0)})
	return err
}

func (n *node) sendRegister(ctx context.Context, req tailcfg.RegisterRequest) (answer tailcfg.RegisterResponse, err error) {
	if _, err := n.connect(ctx); err != nil { // before the timeout, because it waits for other nodes
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cluster.requestTimeout)
	defer cancel()
	req.Version, req.NodeKey, req.Hostinfo = version, n.key.Public(), n.host
	res, err := n.post(ctx, "/machine/register", req)
	if err != nil {
		return answer, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return answer, err
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

func (n *node) mapRequest() tailcfg.MapRequest {
	endpoints, types := n.endpoints()
	return tailcfg.MapRequest{
		Version: version, KeepAlive: true, NodeKey: n.key.Public(), DiscoKey: n.disco,
		Endpoints: endpoints, EndpointTypes: types, Hostinfo: n.host, Compress: "zstd",
	}
}

// update sends endpoints, disco key and hostinfo. Servers accept these only in this request: since capability
// version 68 a streaming request is read-only.
func (n *node) update(ctx context.Context) error {
	n.updating.Lock()
	defer n.updating.Unlock()
	if _, err := n.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cluster.requestTimeout)
	defer cancel()
	req := n.mapRequest()
	req.OmitPeers = true
	res, err := n.post(ctx, "/machine/map", req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	n.updated.Store(true)
	return nil
}

// updateWithRetries sends an update until it succeeds, as clients do, and reports whether it did.
func (n *node) updateWithRetries(ctx context.Context) bool {
	for range 20 {
		err := n.update(ctx)
		if err == nil {
			return true
		}
		n.cluster.noteError("update", err)
		if pause(ctx, time.Second) != nil {
			break
		}
	}
	return false
}

// run keeps a stream open in the background until cut is called. If the server ends the stream, the node
// reconnects after a short pause. The node sends an update before its first stream after a registration. Before
// another run, it must be cut and waited for.
func (n *node) run(ctx context.Context) {
	ctx, n.stop = context.WithCancel(ctx)
	n.picture = picture{peers: n.peers, wanted: n.cluster.expected(n)}
	clear(n.peers)
	n.running.Go(func() {
		for backoff := 500 * time.Millisecond; ; backoff = min(2*backoff, 8*time.Second) {
			what, err := "stream", error(nil)
			if !n.updated.Load() {
				what, err = "update", n.update(ctx)
			}
			if err == nil {
				what, err = "stream", n.stream(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			n.cluster.noteError(what, err)
			n.cluster.retries.Add(1)
			n.giveUp()
			if pause(ctx, backoff+time.Duration(n.index%256)*time.Millisecond) != nil {
				return
			}
		}
	})
}

// cut closes the stream and the connection without a closing handshake.
func (n *node) cut() {
	if n.stop != nil {
		n.stop()
	}
	n.disconnect()
}

func (n *node) stream(ctx context.Context) error {
	start := time.Now()
	if _, err := n.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.watchdog = time.AfterFunc(watchdogTimeout, func() { cancel(errSilent) })
	defer n.watchdog.Stop()
	err := n.follow(ctx, start)
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// follow requests a map and receives messages until the stream ends.
func (n *node) follow(ctx context.Context, start time.Time) error {
	req := n.mapRequest()
	req.Stream = true
	res, err := n.post(ctx, "/machine/map", req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n.mapped = false
	for first := true; ; {
		n.watchdog.Reset(watchdogTimeout)
		var header [4]byte
		if _, err := io.ReadFull(res.Body, header[:]); err != nil {
			return fmt.Errorf("reading map: %w", err)
		}
		size := int(binary.LittleEndian.Uint32(header[:]))
		if size > maxMessage {
			return fmt.Errorf("map message of %d bytes", size)
		}
		if err := n.receive(res.Body, size); err != nil {
			return err
		}
		if first && !n.keepAlive {
			first = false
			n.cluster.firstMap.Load().add(n.arrived.Sub(start))
		}
	}
}

// receive reads a message of a stream.
func (n *node) receive(body io.Reader, size int) error {
	if !n.mapped && n.trusts(size) {
		if _, err := io.CopyN(io.Discard, body, int64(size)); err != nil {
			return fmt.Errorf("reading map: %w", err)
		}
		n.arrived, n.keepAlive = time.Now(), false
		n.count(size)
		n.fullSeen, n.mapped, n.peerCount = true, true, n.wanted
		n.checkConvergence()
		return nil
	}
	if cap(n.message) < size {
		n.message = make([]byte, size)
	}
	message := n.message[:size]
	if _, err := io.ReadFull(body, message); err != nil {
		return fmt.Errorf("reading map: %w", err)
	}
	n.watchdog.Stop() // while the message is handled, which takes long if many nodes share the machine
	n.arrived = time.Now()
	n.cluster.unread.Add(1)
	err := n.take(message)
	n.cluster.unread.Add(-1)
	if cap(n.message) > 64<<10 {
		n.message = nil // keeping a full map per node would use most of the memory
	}
	return err
}

// take decompresses a message and scans it for what a virtual node needs.
func (n *node) take(message []byte) error {
	c := n.cluster
	n.keepAlive = false
	buffer := <-c.buffers
	defer func() { c.buffers <- buffer }()
	text, err := zstdframe.AppendDecode(buffer[:0], message, zstdframe.MaxDecodedSize(maxText))
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	buffer = text
	if err := scanMap(text, n); err != nil {
		return err
	}
	if n.keepAlive {
		c.target.traffic.keepAlives.Add(1)
		return nil
	}
	n.count(len(message))
	c.target.traffic.jsonBytes.Add(int64(len(text)))
	if log := c.changes.Load(); log != nil {
		for number, rest := nextChange(text); rest != nil; number, rest = nextChange(rest) {
			log.seen(n, number, n.arrived)
		}
	}
	n.checkConvergence()
	return nil
}

// trusts reports whether the node assumes that a map of this size contains all its peers, without reading it. To read the maps of
// thousands of nodes takes the generator longer than the server needs to send them. The first map of all is always read, because
// the node learns its ID from it.
func (n *node) trusts(size int) bool {
	return size > largeMap && n.index%n.cluster.readEvery != 0 && n.id.Load() != 0
}

func (n *node) count(size int) {
	t := n.cluster.target.traffic
	t.mapBytes.Add(int64(size) + 4)
	t.messages.Add(1)
	n.cluster.noteMessage(n.arrived)
}

func (n *node) checkConvergence() {
	if !n.converged && n.index < n.cluster.size && n.fullSeen && n.peerCount >= n.wanted {
		n.converged = true
		n.cluster.noteConverged(n.arrived)
	}
}

func (n *node) selfID(id int64) {
	if n.id.Swap(id) != id {
		n.cluster.byID.Store(id, n.index)
	}
}

func (n *node) keptAlive() { n.keepAlive = true }

func (n *node) fullPeers() {
	n.fullSeen, n.mapped = true, true
	n.peerCount = 0
	clear(n.peers)
}

func (n *node) peerKey(hex []byte) {
	index, ok := n.cluster.byKey[keyBits(hex)]
	if !ok || index == n.index {
		return
	}
	word, bit := index/64, uint64(1)<<(index%64)
	if n.peers[word]&bit == 0 {
		n.peers[word] |= bit
		n.peerCount++
	}
	n.mention(index)
}

func (n *node) peerRemoved(id int64) {
	index, ok := n.cluster.indexOf(id)
	if !ok {
		return
	}
	word, bit := index/64, uint64(1)<<(index%64)
	if n.peers[word]&bit != 0 {
		n.peers[word] &^= bit
		n.peerCount--
	}
	n.mention(index)
}

func (n *node) peerPatched(id int64) {
	if n.cluster.watched.Load() == nil && n.cluster.memberships.Load() == nil {
		return
	}
	if index, ok := n.cluster.indexOf(id); ok {
		n.mention(index)
	}
}

func (n *node) mention(index int) {
	if w := n.cluster.watched.Load(); w != nil && w.index == index {
		w.seen(n, n.arrived)
	}
	if l := n.cluster.memberships.Load(); l != nil {
		if w := l.watches[index].Load(); w != nil {
			w.seen(n, n.arrived)
		}
	}
}
