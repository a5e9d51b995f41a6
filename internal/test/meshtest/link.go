package meshtest

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
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlbase"
	"tailscale.com/control/controlhttp/controlhttpcommon"
	"tailscale.com/net/netutil"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// version is the capability version that virtual nodes announce.
const version = tailcfg.CurrentCapabilityVersion

// Crowd is a set of virtual nodes for one server or balancer.
type Crowd struct {
	// Blind nodes receive their maps without decoding them: thousands fit into a process, but none of them
	// knows its id or its peers.
	Blind bool

	t     testing.TB
	host  string // host and port
	tls   bool
	key   key.MachinePublic
	http2 *http2.Transport
	// turns limits how many nodes decode a map at once: hundreds at once would keep each other from
	// responding to pings.
	turns chan struct{}
}

// NewCrowd returns a crowd without nodes. It fetches the server's key.
func NewCrowd(t testing.TB, serverURL string) *Crowd {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	text, err := fetch(t.Context(), &http.Client{Transport: &http.Transport{TLSClientConfig: trusting()}}, http.MethodGet, fmt.Sprintf("%s/key?v=%d", serverURL, version), "")
	if err != nil {
		t.Fatal(err)
	}
	var keys tailcfg.OverTLSPublicKeyResponse
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatalf("%s/key does not answer with a key: %v", serverURL, err)
	}
	return &Crowd{
		t: t, host: u.Host, tls: u.Scheme == "https", key: keys.PublicKey, http2: &http2.Transport{AllowHTTP: true, DisableCompression: true},
		turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
}

// trusting returns settings for TLS with which nobody has to trust the certificates of tests.
func trusting() *tls.Config { return &tls.Config{InsecureSkipVerify: true} } //nolint:gosec // nothing here is secret

// Key returns the server's public key.
func (c *Crowd) Key() key.MachinePublic { return c.key }

// link is one connection of a node: TCP, Noise, HTTP/2.
type link struct {
	conn   *gate
	client *http2.ClientConn
}

// close drops the connection without a closing handshake, as a lost network does.
func (l *link) close() { l.conn.Close() }

// dial connects like a client, but without the client's search for a port.
func (c *Crowd) dial(ctx context.Context, machine key.MachinePrivate) (_ *link, err error) {
	hello, finish, err := controlbase.ClientDeferred(machine, c.key, uint16(version))
	if err != nil {
		return nil, err
	}
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", c.host)
	if err != nil {
		return nil, err
	}
	if c.tls {
		tcp = tls.Client(tcp, trusting())
	}
	conn := &gate{Conn: tcp}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /ts2021 HTTP/1.1\r\nHost: %s\r\nUpgrade: %s\r\nConnection: upgrade\r\n%s: %s\r\nContent-Length: 0\r\n\r\n",
		c.host, controlhttpcommon.UpgradeHeaderValue, controlhttpcommon.HandshakeHeaderName, base64.StdEncoding.EncodeToString(hello))
	if err != nil {
		return nil, err
	}
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
	frames := bufio.NewReader(noise)
	if err := skipPayload(frames); err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	client, err := c.http2.NewClientConn(bufferedConn{noise, frames})
	if err != nil {
		return nil, fmt.Errorf("http2: %w", err)
	}
	return &link{conn: conn, client: client}, nil
}

// skipPayload skips the early payload that a server may send before HTTP/2. It is recognised by its magic
// number, with which no HTTP/2 frame starts; both have a header of nine bytes.
func skipPayload(r *bufio.Reader) error {
	const magic = "\xff\xff\xffTS"
	header, err := r.Peek(9)
	if err != nil || string(header[:len(magic)]) != magic {
		return err
	}
	_, err = r.Discard(len(header) + int(binary.BigEndian.Uint32(header[len(magic):])))
	return err
}

type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// gate is a connection that can be made to stop reading: data stays unread, and pings get no response.
type gate struct {
	net.Conn

	mu   sync.Mutex
	shut chan struct{} // guarded by mu; closed when the gate opens; nil while it is open
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return n, err
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// Close also opens the gate, so that no reader waits forever.
func (g *gate) Close() error {
	defer g.thaw()
	return g.Conn.Close()
}
