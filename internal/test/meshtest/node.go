package meshtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"
)

const (
	requestLimit = 30 * time.Second
	maxMessage   = 64 << 20
	maxBackoff   = 30 * time.Second
)

// Node is a virtual node.
type Node struct {
	Hostname string
	// Host changes what the node reports about its device; by default it is a Linux server.
	Host func(*tailcfg.Hostinfo)

	crowd   *Crowd
	machine key.MachinePrivate
	key     key.NodePrivate
	disco   key.DiscoPublic

	stop    context.CancelFunc // stops the running stream; nil if none runs
	running sync.WaitGroup

	dialing sync.Mutex // held while a connection is made
	mu      sync.Mutex
	link    *link         // guarded by mu; nil if not connected
	view    View          // guarded by mu
	more    chan struct{} // guarded by mu; closed when the view changes
	ends    []string      // guarded by mu; why streams ended

	endpoints []netip.AddrPort // guarded by mu
}

// Node returns a node that has not registered yet.
func (c *Crowd) Node(hostname string) *Node {
	return c.Twin(&Node{Hostname: hostname, machine: key.NewMachine(), key: key.NewNode(), disco: key.NewDisco().Public()})
}

// Twin returns the same node again, as after a network change that left the old connection hanging. It may
// connect to another server of the same mesh.
func (c *Crowd) Twin(of *Node) *Node {
	n := &Node{Hostname: of.Hostname, Host: of.Host, crowd: c, machine: of.machine, key: of.key, disco: of.disco, more: make(chan struct{})}
	c.t.Cleanup(n.Disconnect)
	return n
}

func (n *Node) host() *tailcfg.Hostinfo {
	host := &tailcfg.Hostinfo{
		IPNVersion: "1.102.5", OS: "linux", GoArch: "amd64", Hostname: n.Hostname,
		Services: []tailcfg.Service{{Proto: tailcfg.PeerAPI4, Port: 40000}},
		NetInfo:  &tailcfg.NetInfo{PreferredDERP: 999, WorkingUDP: "true"},
	}
	if n.Host != nil {
		n.Host(host)
	}
	return host
}

// connect dials if there is no working connection.
func (n *Node) connect(ctx context.Context) (*link, error) {
	n.dialing.Lock()
	defer n.dialing.Unlock()
	n.mu.Lock()
	l := n.link
	n.mu.Unlock()
	if l != nil && l.client.CanTakeNewRequest() {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	l, err := n.crowd.dial(ctx, n.machine)
	if err != nil {
		return nil, err
	}
	n.drop()
	n.mu.Lock()
	n.link = l
	n.mu.Unlock()
	return l, nil
}

// drop closes the connection without a closing handshake.
func (n *Node) drop() {
	n.mu.Lock()
	l := n.link
	n.link = nil
	n.mu.Unlock()
	if l != nil {
		l.close()
	}
}

func (n *Node) post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return n.ask(ctx, http.MethodPost, path, text)
}

func (n *Node) ask(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	l, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+n.crowd.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := l.client.RoundTrip(req)
	if err != nil {
		if ctx.Err() == nil {
			n.drop() // the connection was at fault, not the request
		}
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return nil, fmt.Errorf("%s: %s: %s", path, res.Status, bytes.TrimSpace(text))
	}
	return res, nil
}

// Register joins with a pre-auth key. The error contains the server's message.
func (n *Node) Register(ctx context.Context, authKey string) error {
	answer, err := n.register(ctx, tailcfg.RegisterRequest{Auth: &tailcfg.RegisterResponseAuth{AuthKey: authKey}})
	if err == nil && !answer.MachineAuthorized {
		return errors.New("registered but not authorized")
	}
	return err
}

// Knock asks to join without a key and waits like a client until the device is approved or the context ends.
func (n *Node) Knock(ctx context.Context) error {
	link, err := n.Ask(ctx)
	if err != nil || link == "" {
		return err
	}
	return n.Follow(ctx, link)
}

// Ask asks to join without a key, and returns the login link. It is empty if the node has joined already.
func (n *Node) Ask(ctx context.Context) (link string, err error) {
	answer, err := n.register(ctx, tailcfg.RegisterRequest{})
	if err == nil && !answer.MachineAuthorized && answer.AuthURL == "" {
		err = errors.New("neither registered nor given a link")
	}
	return answer.AuthURL, err
}

// Follow waits like a client until the device with this login link is approved or the context ends.
func (n *Node) Follow(ctx context.Context, link string) error {
	for {
		answer, err := n.register(ctx, tailcfg.RegisterRequest{Followup: link})
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		case err != nil, answer.MachineAuthorized:
			return err
		case answer.AuthURL == "":
			return errors.New("neither registered nor given a link")
		default:
			link = answer.AuthURL
		}
	}
}

// Logout expires the node's key at once.
func (n *Node) Logout(ctx context.Context) error {
	_, err := n.register(ctx, tailcfg.RegisterRequest{Expiry: time.Unix(123, 0)})
	return err
}

func (n *Node) register(ctx context.Context, req tailcfg.RegisterRequest) (answer tailcfg.RegisterResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	req.Version, req.NodeKey, req.Hostinfo = version, n.key.Public(), n.host()
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

func (n *Node) mapRequest() tailcfg.MapRequest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return tailcfg.MapRequest{
		Version: version, KeepAlive: true, NodeKey: n.key.Public(), DiscoKey: n.disco, Hostinfo: n.host(), Endpoints: n.endpoints, Compress: "zstd",
	}
}

// Report sends the endpoints of the node.
func (n *Node) Report(ctx context.Context, endpoints ...netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	n.mu.Lock()
	n.endpoints = endpoints
	n.mu.Unlock()
	req := n.mapRequest()
	req.OmitPeers = true
	res, err := n.post(ctx, "/machine/map", req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// MapOf requests the map of a node once, without a stream, and returns it. It does not change whether the node is
// online.
func MapOf(ctx context.Context, n *Node) (v View, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	res, err := n.post(ctx, "/machine/map", n.mapRequest())
	if err != nil {
		return v, err
	}
	defer res.Body.Close()
	for {
		frames, err := readFrames(res.Body)
		if errors.Is(err, io.EOF) && v.Self.ID != 0 {
			return v, nil
		}
		if err != nil {
			return v, err
		}
		m, err := n.crowd.read(frames)
		if err != nil {
			return v, err
		}
		v.take(m, time.Now())
	}
}

// readFrames reads one message, still compressed.
func readFrames(r io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(r, binary.LittleEndian, &size); err != nil {
		return nil, fmt.Errorf("reading the map: %w", err)
	}
	if size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	frames := make([]byte, size)
	if _, err := io.ReadFull(r, frames); err != nil {
		return nil, fmt.Errorf("reading the map: %w", err)
	}
	return frames, nil
}

// Connect keeps a stream open in the background until Disconnect is called. A stream that ends is reopened as
// clients do: immediately, then with growing pauses until a map arrives.
func (n *Node) Connect() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.running.Go(func() {
		for failures := 1; ; failures++ {
			arrived, err := n.stream(ctx)
			if ctx.Err() != nil {
				return
			}
			n.mu.Lock()
			n.ends = append(n.ends, err.Error())
			n.mu.Unlock()
			if arrived {
				failures = 1
			}
			backoff := min(time.Duration(failures*failures)*10*time.Millisecond, maxBackoff)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration((0.5 + rand.Float64()) * float64(backoff))):
			}
		}
	})
}

// Disconnect closes stream and connection without a closing handshake.
func (n *Node) Disconnect() {
	if n.stop != nil {
		n.stop()
	}
	n.drop()
	n.running.Wait()
	n.drop() // a connection that was being opened
}

// stream opens a stream and reads it to the end. It reports whether a map arrived.
func (n *Node) stream(ctx context.Context) (arrived bool, err error) {
	req := n.mapRequest()
	req.Stream = true
	res, err := n.post(ctx, "/machine/map", req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	for {
		frames, err := readFrames(res.Body)
		if err != nil {
			return arrived, err
		}
		if n.crowd.Blind {
			arrived = true
			continue
		}
		at := time.Now()
		m, err := n.crowd.read(frames)
		switch {
		case err != nil:
			return arrived, err
		case m.KeepAlive:
			continue
		case !arrived && m.Node == nil:
			return arrived, errors.New("the first map lacks the node")
		}
		arrived = true
		n.mu.Lock()
		n.view.take(m, at)
		close(n.more)
		n.more = make(chan struct{})
		n.mu.Unlock()
	}
}

// read decodes a message when it is its turn.
func (c *Crowd) read(frames []byte) (*tailcfg.MapResponse, error) {
	c.turns <- struct{}{}
	defer func() { <-c.turns }()
	text, err := zstdframe.AppendDecode(nil, frames, zstdframe.MaxDecodedSize(maxMessage))
	if err != nil {
		return nil, err
	}
	m := new(tailcfg.MapResponse)
	return m, json.Unmarshal(text, m)
}

// Freeze stops the node from reading its connection and responding to pings until Thaw is called.
func (n *Node) Freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil {
		n.link.conn.freeze()
	}
}

// Thaw undoes Freeze.
func (n *Node) Thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil {
		n.link.conn.thaw()
	}
}

// Look calls f with the node's view. f must not keep it.
func (n *Node) Look(f func(*View)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.view)
}

// ID returns the server's id of the node, or 0 before its first map.
func (n *Node) ID() (id tailcfg.NodeID) {
	n.Look(func(v *View) { id = v.Self.ID })
	return id
}

// Await waits until the node's view meets a condition, and returns when the message that caused it arrived.
func (n *Node) Await(ctx context.Context, wanted func(*View) bool) (at time.Time, err error) {
	for {
		n.mu.Lock()
		seen, at, more, last := wanted(&n.view), n.view.At, n.more, ""
		if len(n.ends) > 0 {
			last = n.ends[len(n.ends)-1]
		}
		n.mu.Unlock()
		if seen {
			return at, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return at, fmt.Errorf("%s does not see it: %w (last message %v ago, last stream ended with %q)", n.Hostname, ctx.Err(), time.Since(at), last)
		}
	}
}

// Ends returns why streams ended, one text for each.
func (n *Node) Ends() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.ends...)
}
