//go:build !race

package hostiletest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"tailscale.com/control/controlbase"
	"tailscale.com/net/netutil"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// stranger is a connection with a machine key that the server does not know.
type stranger struct {
	tcp   net.Conn
	noise *controlbase.Conn
	from  *bufio.Reader // the decrypted stream
}

// enter completes the handshake as a stranger.
func (a *attacker) enter(ctx context.Context) (_ *stranger, err error) {
	hello, finish, err := controlbase.ClientDeferred(key.NewMachine(), a.Noise, uint16(tailcfg.CurrentCapabilityVersion))
	if err != nil {
		return nil, err
	}
	tcp, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			tcp.Close()
		}
	}()
	if err := tcp.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(tcp, upgradeText(hello)); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(tcp, 1024)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("%d", res.StatusCode)
	}
	noise, err := finish(ctx, netutil.NewDrainBufConn(tcp, in))
	if err != nil {
		return nil, err
	}
	s := &stranger{tcp: tcp, noise: noise, from: bufio.NewReader(noise)}
	if err := s.skipEarly(); err != nil {
		return nil, err
	}
	return s, tcp.SetDeadline(time.Time{})
}

// skipEarly skips the early payload that the server sends before HTTP/2.
func (s *stranger) skipEarly() error {
	header, err := s.from.Peek(9)
	if err != nil || !bytes.HasPrefix(header, []byte("\xff\xff\xffTS")) {
		return err
	}
	_, err = s.from.Discard(len(header) + int(binary.BigEndian.Uint32(header[5:])))
	return err
}

// client returns a well-behaved HTTP/2 client.
func (s *stranger) client() (*http2.ClientConn, error) {
	t := &http2.Transport{AllowHTTP: true, DisableCompression: true}
	return t.NewClientConn(readFirst{s.noise, s.from})
}

// readFirst is a connection that returns buffered bytes before the rest.
type readFirst struct {
	net.Conn
	from *bufio.Reader
}

func (c readFirst) Read(p []byte) (int, error) { return c.from.Read(p) }

// silentStranger completes the handshake and then sends nothing.
func silentStranger(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	return a.hold(s.tcp)
}

// handshake completes the handshake and disconnects.
func handshake(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	s.tcp.Close()
	return "entered"
}

// halfRecord sends the header of a Noise record without its content.
func halfRecord(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	const recordType = 4
	if _, err := s.tcp.Write([]byte{recordType, 0x0f, 0xff, 0}); err != nil {
		return cause(err)
	}
	return a.hold(s.tcp)
}

// begin sends the preface and the settings of an HTTP/2 client. With a window of zero, the client
// accepts no response body.
func (s *stranger) begin(window uint32) (*http2.Framer, error) {
	if _, err := io.WriteString(s.noise, http2.ClientPreface); err != nil {
		return nil, err
	}
	f := http2.NewFramer(s.noise, s.from)
	return f, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
}

// headers encodes the headers of a request.
func (r row) headers(more ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	fields := append([]string{":method", r.method, ":scheme", "https", ":authority", "mesh.example", ":path", r.path}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // writing to a buffer cannot fail
	}
	return b.Bytes()
}

// requestsAtOnce is how many concurrent requests a known client may have.
const requestsAtOnce = 32

// halfRequests starts a request on every machine route, and more up to the limit of a known client.
// It sends 2 kB of each body and then nothing.
func halfRequests(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	defer s.tcp.Close()
	return a.requests(s, 1<<20, func(f *http2.Framer, id uint32, r row) error {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.headers("content-length", "100000"), EndHeaders: true})
		if err != nil {
			return err
		}
		return f.WriteData(id, false, append([]byte(r.body), bytes.Repeat([]byte("x"), 2000)...))
	})
}

// unreadAnswers sends a request to every machine route and accepts none of the responses.
func unreadAnswers(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	defer s.tcp.Close()
	return a.requests(s, 0, func(f *http2.Framer, id uint32, r row) error {
		end := r.body == ""
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.headers(), EndHeaders: true, EndStream: end}); err != nil || end {
			return err
		}
		return f.WriteData(id, true, []byte("{}"))
	})
}

// requests sends requests to all machine routes and waits until the connection is closed.
func (a *attacker) requests(s *stranger, window uint32, send func(*http2.Framer, uint32, row) error) string {
	f, err := s.begin(window)
	if err != nil {
		return cause(err)
	}
	rows := machineRows()
	for i := range requestsAtOnce {
		if err := send(f, uint32(2*i+1), rows[i%len(rows)]); err != nil {
			return cause(err)
		}
	}
	return a.hold(s.tcp)
}

// inside sends one complete request to a machine route and returns the status.
func (a *attacker) inside(ctx context.Context, r row, encoding string, body []byte) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	defer s.tcp.Close()
	c, err := s.client()
	if err != nil {
		return cause(err)
	}
	header := http.Header{"Content-Encoding": {encoding}}
	if encoding == "" {
		header = nil
	}
	status, err := ask(ctx, c, r.method, r.path, header, body, nil)
	if err != nil {
		return "request failed"
	}
	return strconv.Itoa(status)
}

// ask sends a request and decodes the response if out is not nil.
func ask(ctx context.Context, c *http2.ClientConn, method, path string, header http.Header, body []byte, out any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://mesh.example"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	maps.Copy(req.Header, header)
	res, err := c.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
	} else {
		err = json.NewDecoder(res.Body).Decode(out)
	}
	return res.StatusCode, err
}

// machineRoute returns the machine routes in turn.
func (a *attacker) machineRoute() row {
	rows := machineRows()
	return rows[int(a.next.Add(1))%len(rows)]
}

func oversizedInside(ctx context.Context, a *attacker) string {
	r := a.machineRoute()
	return a.inside(ctx, r, "", append([]byte(r.body), bytes.Repeat([]byte("x"), 1<<20)...))
}

func bombInside(ctx context.Context, a *attacker) string {
	return a.inside(ctx, a.machineRoute(), "gzip", bomb())
}

// joinsPerConnection is how many join requests one connection of a join flood sends.
const joinsPerConnection = 20

// joinUnit tries to join many times on one connection, with a pre-auth key or without one.
func joinUnit(authKey string) unit {
	return func(ctx context.Context, a *attacker) string {
		s, err := a.enter(ctx)
		if err != nil {
			return cause(err)
		}
		defer s.tcp.Close()
		c, err := s.client()
		if err != nil {
			return cause(err)
		}
		req := tailcfg.RegisterRequest{}
		if authKey != "" {
			req.Auth = &tailcfg.RegisterResponseAuth{AuthKey: authKey}
		}
		for range joinsPerConnection - 1 {
			if _, outcome := register(ctx, c, req); outcome == failed {
				return outcome
			}
		}
		_, outcome := register(ctx, c, req)
		return outcome
	}
}

const failed = "request failed"

// register tries to join and returns the login link, if there is one.
func register(ctx context.Context, c *http2.ClientConn, req tailcfg.RegisterRequest) (link, outcome string) {
	if req.NodeKey.IsZero() {
		req.NodeKey = key.NewNode().Public()
	}
	req.Version, req.Hostinfo = tailcfg.CurrentCapabilityVersion, &tailcfg.Hostinfo{Hostname: "stranger"}
	body, err := json.Marshal(req)
	if err != nil {
		return "", err.Error()
	}
	var answer tailcfg.RegisterResponse
	status, err := ask(ctx, c, http.MethodPost, "/machine/register", nil, body, &answer)
	switch {
	case status == 0:
		return "", failed
	case err != nil || status != http.StatusOK:
		return "", strconv.Itoa(status)
	case answer.Error != "":
		return "", "rejected"
	case answer.AuthURL != "":
		return answer.AuthURL, "given a link"
	}
	return "", "answered"
}

// waitingLogin requests a login link and waits for an administrator's approval.
func waitingLogin(ctx context.Context, a *attacker) string {
	s, err := a.enter(ctx)
	if err != nil {
		return cause(err)
	}
	defer s.tcp.Close()
	c, err := s.client()
	if err != nil {
		return cause(err)
	}
	node := key.NewNode().Public()
	link, outcome := register(ctx, c, tailcfg.RegisterRequest{NodeKey: node})
	if link == "" {
		return outcome
	}
	_, outcome = register(ctx, c, tailcfg.RegisterRequest{NodeKey: node, Followup: link})
	return outcome
}
