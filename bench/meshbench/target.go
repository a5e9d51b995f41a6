package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlbase"
	"tailscale.com/control/controlhttp/controlhttpcommon"
	"tailscale.com/net/netutil"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// version is the capability version that every virtual node announces.
const version = tailcfg.CurrentCapabilityVersion

// traffic is what all nodes received in total.
type traffic struct {
	wireBytes  atomic.Int64 // below Noise
	messages   atomic.Int64 // map messages without keep-alives
	mapBytes   atomic.Int64 // their bytes, compressed
	jsonBytes  atomic.Int64 // and decompressed
	keepAlives atomic.Int64
}

// target is the server under test, or several replicas of it.
type target struct {
	base    *url.URL // of the first replica
	addrs   []string
	key     key.MachinePublic
	http2   *http2.Transport
	traffic *traffic
	// dials limits how many nodes connect and send their first request at a time. Without this limit, thousands of nodes would
	// compete for the machine's CPU for so long that the server would stop waiting for their requests.
	dials chan struct{}
}

// dialTimeout is how long a Tailscale client tries to connect, including the Noise handshake, before it gives up.
const dialTimeout = 10 * time.Second

// newTarget returns the server at a URL, or at several that are separated by commas. It fetches the server's Noise key from the
// first of them.
func newTarget(ctx context.Context, rawURLs string, seen *traffic, dials int) (*target, error) {
	t := &target{traffic: seen, dials: make(chan struct{}, dials), http2: &http2.Transport{AllowHTTP: true, DisableCompression: true}}
	for rawURL := range strings.SplitSeq(rawURLs, ",") {
		u, err := url.Parse(strings.TrimRight(rawURL, "/"))
		if err != nil {
			return nil, err
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		t.addrs = append(t.addrs, net.JoinHostPort(u.Hostname(), port))
		if t.base == nil {
			t.base = u
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/key?v=%d", t.base, version), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 10 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var keys tailcfg.OverTLSPublicKeyResponse
	if err := json.NewDecoder(res.Body).Decode(&keys); err != nil {
		return nil, fmt.Errorf("%s/key responded with %s instead of a key: %w", t.base, res.Status, err)
	}
	t.key = keys.PublicKey
	return t, nil
}

// countingConn counts received bytes.
type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// plainConn is a connection that starts with HTTP/2. Before it, a server may send an early payload, which
// virtual nodes ignore.
type plainConn struct {
	net.Conn
	buffered *bufio.Reader
	begun    bool
}

func (c *plainConn) Read(p []byte) (int, error) {
	if !c.begun {
		if err := c.skipPayload(); err != nil {
			return 0, err
		}
		c.begun = true
	}
	return c.buffered.Read(p)
}

// skipPayload skips the early payload, which it recognises by its magic number. No HTTP/2 frame starts with
// it, and both have a header of nine bytes.
func (c *plainConn) skipPayload() error {
	const magic = "\xff\xff\xffTS"
	header, err := c.buffered.Peek(9)
	if err != nil || string(header[:len(magic)]) != magic {
		return err
	}
	_, err = c.buffered.Discard(len(header) + int(binary.BigEndian.Uint32(header[len(magic):])))
	return err
}

// link is one connection of a node: TCP, Noise, HTTP/2.
type link struct {
	conn   net.Conn
	client *http2.ClientConn
}

// close drops the TCP connection without a closing handshake, as a lost network does.
func (l *link) close() { l.conn.Close() }

// source returns the address from which the node with this index dials a server on this machine, so that each node has its own.
// For other servers, it returns nil.
func (t *target) source(index int) net.Addr {
	if t.base.Hostname() != "127.0.0.1" {
		return nil
	}
	return &net.TCPAddr{IP: net.IPv4(127, byte(1+index>>16), byte(index>>8), byte(index))}
}

// dial opens a connection as the given machine, with the client's HTTP upgrade, but without racing several
// ports. Consecutive turns use consecutive replicas. The time limit does not include waiting for other nodes of the generator.
func (t *target) dial(ctx context.Context, machine key.MachinePrivate, source net.Addr, turn int) (_ *link, err error) {
	select {
	case t.dials <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	sent := sync.OnceFunc(func() { <-t.dials })
	defer sent()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	hello, finish, err := controlbase.ClientDeferred(machine, t.key, uint16(version))
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{LocalAddr: source}).DialContext(ctx, "tcp", t.addrs[turn%len(t.addrs)])
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	conn = countingConn{conn, &t.traffic.wireBytes}
	if t.base.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: t.base.Hostname(), NextProtos: []string{"http/1.1"}})
	}
	_, err = fmt.Fprintf(conn, "POST /ts2021 HTTP/1.1\r\nHost: %s\r\nUpgrade: %s\r\nConnection: upgrade\r\n%s: %s\r\nContent-Length: 0\r\n\r\n",
		t.base.Host, controlhttpcommon.UpgradeHeaderValue,
		controlhttpcommon.HandshakeHeaderName, base64.StdEncoding.EncodeToString(hello))
	if err != nil {
		return nil, err
	}
	sent()
	buffered := bufio.NewReaderSize(conn, 1024)
	res, err := http.ReadResponse(buffered, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return nil, fmt.Errorf("upgrade: %s: %s", res.Status, text)
	}
	noise, err := finish(ctx, netutil.NewDrainBufConn(conn, buffered))
	if err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	client, err := t.http2.NewClientConn(&plainConn{Conn: noise, buffered: bufio.NewReader(noise)})
	if err != nil {
		return nil, fmt.Errorf("http2: %w", err)
	}
	return &link{conn: conn, client: client}, nil
}
