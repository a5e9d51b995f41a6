package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"
)

// reference is a server reduced to what the wire protocol requires: it keeps nodes in memory, has no policy
// and no database, and builds every message once for all receivers. It shows what the machine is capable of,
// not what a server should do.
type reference struct {
	noise         key.MachinePrivate
	batch         time.Duration // changes are collected for this long before they are sent
	keepAlive     time.Duration // mean time between keep-alives on a stream
	keepAliveSent []byte        // clients remember its bytes, so they never change
	wake          chan struct{}

	mu      sync.Mutex
	nodes   []*refNode // guarded by mu, like all fields below
	byKey   map[key.NodePublic]*refNode
	streams map[chan []byte]struct{}
	joined  []*refNode // not yet announced
	patched []*tailcfg.PeerChange
	removed []tailcfg.NodeID
	pages   []refPage
	full    []byte // the full map as sent to everyone; nil if stale
}

// refPage is one compressed run of peers. A map message may consist of several
// zstd frames, so a change costs one page and not the whole map.
type refPage struct {
	zstd  []byte // nil if stale
	comma bool   // it starts with a comma, because peers come before it
	empty bool
}

const (
	nodesPerPage = 64
	streamQueue  = 256
)

type refNode struct {
	node      *tailcfg.Node
	json      []byte // nil until the first stream, and after a logout
	announced bool   // whether it was announced to the streams that were open
}

func newReference(batch, keepAlive time.Duration) *reference {
	return &reference{
		noise: key.NewMachine(), batch: batch, keepAlive: keepAlive,
		keepAliveSent: encode([]byte(`{"KeepAlive":true}`)), wake: make(chan struct{}, 1),
		byKey: map[key.NodePublic]*refNode{}, streams: map[chan []byte]struct{}{},
	}
}

func compress(b []byte) []byte {
	return zstdframe.AppendEncode(nil, b, zstdframe.FastestCompression, zstdframe.WithChecksum(false))
}

// encode compresses a message and prefixes it with its length.
func encode(message []byte) []byte {
	sent := zstdframe.AppendEncode(make([]byte, 4, 4+len(message)/3), message, zstdframe.FastestCompression)
	binary.LittleEndian.PutUint32(sent, uint32(len(sent)-4))
	return sent
}

// message encodes a message other than a keep-alive. Clients keep the learned keep-alive in the buffer into
// which they read messages, so a message of the same length right after one would be mistaken for a
// keep-alive. message never returns one of that length.
func (s *reference) message(text []byte) []byte {
	sent := encode(text)
	for len(sent) == len(s.keepAliveSent) {
		text = append(text[:len(text):len(text)], ' ')
		sent = encode(text)
	}
	return sent
}

func (s *reference) register(w http.ResponseWriter, r *http.Request) {
	var req tailcfg.RegisterRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Hostinfo == nil {
		http.Error(w, "not a register request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n := s.byKey[req.NodeKey]
	switch {
	case !req.Expiry.IsZero() && n != nil:
		s.logout(n)
	case n == nil:
		s.add(&req)
	}
	s.mu.Unlock()
	// If the client has disconnected, it will retry.
	_ = json.NewEncoder(w).Encode(tailcfg.RegisterResponse{MachineAuthorized: true})
}

func (s *reference) add(req *tailcfg.RegisterRequest) {
	id := len(s.nodes) + 1
	v4 := netip.AddrFrom4([4]byte{100, 64, byte(id >> 8), byte(id)})
	v6 := netip.AddrFrom16([16]byte{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 14: byte(id >> 8), 15: byte(id)})
	addresses := []netip.Prefix{netip.PrefixFrom(v4, 32), netip.PrefixFrom(v6, 128)}
	n := &refNode{node: &tailcfg.Node{
		ID: tailcfg.NodeID(id), StableID: tailcfg.StableNodeID(fmt.Sprint(id)), Name: req.Hostinfo.Hostname + ".example.com.",
		User: 1, Key: req.NodeKey, Machine: key.NewMachine().Public(), Addresses: addresses, AllowedIPs: addresses,
		Hostinfo: req.Hostinfo.View(), Created: time.Now(), Cap: req.Version, Online: new(true), MachineAuthorized: true,
	}}
	s.nodes = append(s.nodes, n)
	s.byKey[req.NodeKey] = n
}

func (s *reference) logout(n *refNode) {
	n.json, n.announced = nil, false
	s.stale(n)
	s.removed = append(s.removed, n.node.ID)
	s.kick()
}

func (s *reference) serveMap(w http.ResponseWriter, r *http.Request) {
	var req tailcfg.MapRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, "not a map request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n := s.byKey[req.NodeKey]
	if n == nil || !req.Stream {
		s.update(n, &req)
		s.mu.Unlock()
		if n == nil {
			http.Error(w, "unknown node", http.StatusNotFound)
		}
		return
	}
	// A stream is read-only: the node data in the request is ignored.
	if n.json == nil {
		s.marshal(n)
		s.joined = append(s.joined, n)
		s.kick()
	}
	changes := make(chan []byte, streamQueue)
	s.streams[changes] = struct{}{}
	first := [][]byte{s.message(fmt.Appendf(nil, `{"Node":%s}`, n.json)), s.fullMap()}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.streams, changes)
		s.mu.Unlock()
	}()
	s.stream(r.Context(), w, first, changes)
}

// stream sends the messages of first, and then what comes from changes.
func (s *reference) stream(ctx context.Context, w http.ResponseWriter, first [][]byte, changes <-chan []byte) {
	out := http.NewResponseController(w)
	send := func(messages ...[]byte) bool {
		for _, b := range messages {
			if _, err := w.Write(b); err != nil {
				return false
			}
		}
		return out.Flush() == nil
	}
	if !send(first...) {
		return
	}
	first = nil
	// The first keep-alive comes at a random point of the interval, so that
	// they are spread evenly from the start.
	alive := time.NewTimer(rand.N(s.keepAlive))
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive.C:
			if !send(s.keepAliveSent) {
				return
			}
			alive.Reset(s.keepAlive*9/10 + rand.N(s.keepAlive/5))
		case b := <-changes:
			if !send(b) {
				return
			}
		}
	}
}

// update stores the node data of a request. Peers get it in a patch if they already know the node; otherwise
// it is part of the node's announcement.
func (s *reference) update(n *refNode, req *tailcfg.MapRequest) {
	if n == nil {
		return
	}
	n.node.DiscoKey, n.node.Endpoints = req.DiscoKey, req.Endpoints
	if host := req.Hostinfo; host != nil {
		n.node.Hostinfo = host.View()
		if host.NetInfo != nil {
			n.node.HomeDERP = host.NetInfo.PreferredDERP
		}
	}
	if n.json == nil {
		return
	}
	s.marshal(n)
	if n.announced {
		s.patched = append(s.patched, &tailcfg.PeerChange{NodeID: n.node.ID, Endpoints: req.Endpoints})
		s.kick()
	}
}

func (s *reference) marshal(n *refNode) {
	text, err := json.Marshal(n.node)
	if err != nil {
		panic(err) // a node that was decoded can be encoded
	}
	n.json = text
	s.stale(n)
}

// stale marks the page that contains n as stale.
func (s *reference) stale(n *refNode) {
	page := int(n.node.ID-1) / nodesPerPage
	for len(s.pages) <= page {
		s.pages = append(s.pages, refPage{})
	}
	s.pages[page].zstd, s.full = nil, nil
}

func (s *reference) fullMap() []byte {
	if s.full != nil {
		return s.full
	}
	full := append(make([]byte, 4, 1<<16+len(s.nodes)*200), compress([]byte(`{"Peers":[`))...)
	comma := false
	for i := range s.pages {
		p := &s.pages[i]
		if p.zstd == nil || p.comma != comma {
			s.encodePage(i, comma)
		}
		comma = comma || !p.empty
		full = append(full, p.zstd...)
	}
	full = append(full, compress([]byte(`]}`))...)
	if len(full) == len(s.keepAliveSent) { // see message
		full = append(full, compress([]byte(` `))...)
	}
	binary.LittleEndian.PutUint32(full, uint32(len(full)-4))
	s.full = full
	return full
}

func (s *reference) encodePage(i int, comma bool) {
	var b bytes.Buffer
	for _, n := range s.nodes[i*nodesPerPage : min(len(s.nodes), (i+1)*nodesPerPage)] {
		if n.json == nil {
			continue
		}
		if comma || b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(n.json)
	}
	s.pages[i] = refPage{zstd: compress(b.Bytes()), comma: comma, empty: b.Len() == 0}
}

func (s *reference) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// announce builds one message per round and passes the same bytes to all streams, until ctx ends.
func (s *reference) announce(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if pause(ctx, s.batch) != nil {
			return
		}
		s.mu.Lock()
		if sent := s.delta(); sent != nil {
			for stream := range s.streams {
				select {
				case stream <- sent:
				default: // a reader that is streamQueue messages behind misses this one
				}
			}
		}
		s.mu.Unlock()
	}
}

// delta returns the changes to announce, or nil if an earlier round took them all.
func (s *reference) delta() []byte {
	if len(s.joined)+len(s.patched)+len(s.removed) == 0 {
		return nil
	}
	var m struct {
		PeersChanged      []json.RawMessage     `json:",omitempty"`
		PeersChangedPatch []*tailcfg.PeerChange `json:",omitempty"`
		PeersRemoved      []tailcfg.NodeID      `json:",omitempty"`
	}
	for _, n := range s.joined {
		if n.json == nil {
			continue
		}
		n.announced = true
		m.PeersChanged = append(m.PeersChanged, n.json)
	}
	m.PeersChangedPatch, m.PeersRemoved = s.patched, s.removed
	s.joined, s.patched, s.removed = nil, nil, nil
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // everything was decoded from JSON
	}
	return s.message(text)
}

func (s *reference) handler() http.Handler {
	inside := http.NewServeMux()
	inside.HandleFunc("POST /machine/register", s.register)
	inside.HandleFunc("POST /machine/map", s.serveMap)
	server := new(http2.Server)
	outside := http.NewServeMux()
	outside.HandleFunc("GET /key", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(tailcfg.OverTLSPublicKeyResponse{PublicKey: s.noise.Public()})
	})
	outside.HandleFunc("/ts2021", func(w http.ResponseWriter, r *http.Request) {
		conn, err := controlhttpserver.AcceptHTTP(r.Context(), w, r, s.noise, nil)
		if err != nil {
			return // the client got a response already
		}
		defer conn.Close()
		server.ServeConn(conn, &http2.ServeConnOpts{Handler: inside, BaseConfig: &http.Server{ReadHeaderTimeout: 10 * time.Second}})
	})
	return outside
}

func refServer(ctx context.Context, args []string, log io.Writer) error {
	fs := flag.NewFlagSet("refserver", flag.ContinueOnError)
	fs.SetOutput(log)
	listen := fs.String("listen", "127.0.0.1:8090", "`address` to serve on")
	batch := fs.Duration("batch", 5*time.Millisecond, "how long to collect changes before sending them")
	alive := fs.Duration("keep-alive", 50*time.Second, "mean time between keep-alives on a stream")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *alive < time.Millisecond {
		return fmt.Errorf("--keep-alive %v is too short", *alive)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	s := newReference(*batch, *alive)
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	var announcing sync.WaitGroup
	defer announcing.Wait()
	announcing.Go(func() { s.announce(ctx) })
	fmt.Fprintf(log, "refserver on http://%s, pid %d\n", l.Addr(), os.Getpid())
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
