package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
	"go4.org/mem"
	"tailscale.com/derp"
	"tailscale.com/net/stun"
	"tailscale.com/types/key"
)

// The checks of a probe.
const (
	CheckSTUN      = "stun"      // a response to a STUN request
	CheckHTTPS     = "https"     // a response over TLS, with a certificate that this machine accepts
	CheckDERP      = "derp"      // an upgrade to DERP, which most clients use
	CheckWebSocket = "websocket" // an upgrade to a WebSocket, which clients in browsers use
)

const (
	// probeTimeout limits each check.
	probeTimeout = 5 * time.Second
	stunAttempts = 4
	stunWait     = 700 * time.Millisecond
	defaultSTUN  = 3478
	// maxServerKey is the largest first frame of a relay that a probe reads.
	maxServerKey = 1 << 10
)

// Target is a relay to probe.
type Target struct {
	URL      string
	STUNPort int // 0 means 3478, a negative number that the relay does not respond to STUN
	// Addrs are used instead of DNS if there are any, as clients do.
	Addrs []netip.Addr
	// Key is the public key that the relay must have.
	Key key.NodePublic
	// Roots are the trusted authorities; nil means those of the system.
	Roots *x509.CertPool
}

// ProbeCheck is the result of one check of a probe.
type ProbeCheck struct {
	Name string
	// Latency is how long the relay took to respond; zero if the check failed.
	Latency time.Duration
	// Problem says why the check failed, and what to do. It is empty if the check passed.
	Problem string
}

// Probe checks that clients can use a relay. It checks upgrades only if the relay responds at all. It starts a goroutine and
// waits for it.
func Probe(ctx context.Context, t Target) []ProbeCheck {
	u, err := url.Parse(t.URL)
	if err != nil {
		return []ProbeCheck{{Name: CheckHTTPS, Problem: "invalid URL: correct --url of the relay"}}
	}
	var checks []ProbeCheck
	p := &probe{Target: t, url: u}
	timed := func(name string, check func(context.Context) (time.Duration, error)) ProbeCheck {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		took, err := check(ctx)
		if err != nil {
			return ProbeCheck{Name: name, Problem: err.Error()}
		}
		return ProbeCheck{Name: name, Latency: max(took, time.Microsecond)}
	}
	var udp sync.WaitGroup
	var overUDP ProbeCheck
	if t.STUNPort >= 0 {
		udp.Go(func() { overUDP = timed(CheckSTUN, p.stun) })
	}
	checks = append(checks, timed(CheckHTTPS, p.https))
	if checks[0].Problem == "" {
		checks = append(checks, timed(CheckDERP, p.derp), timed(CheckWebSocket, p.webSocket))
	}
	if udp.Wait(); overUDP.Name != "" {
		checks = append(checks, overUDP)
	}
	return checks
}

// probe is one run of Probe.
type probe struct {
	Target
	url *url.URL
}

// port returns the TCP port of the relay.
func (p *probe) port() string {
	switch {
	case p.url.Port() != "":
		return p.url.Port()
	case p.url.Scheme == "http":
		return "80"
	}
	return "443"
}

// client returns an HTTP client for one request.
func (p *probe) client() *http.Client {
	var only http.Protocols
	only.SetHTTP1(true) // HTTP/2 has no upgrades
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: p.dial, TLSClientConfig: &tls.Config{RootCAs: p.Roots}, DisableKeepAlives: true, Protocols: &only, MaxResponseHeaderBytes: 16 << 10,
		},
	}
}

// dial connects to the first address that responds.
func (p *probe) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	if len(p.Addrs) == 0 {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	for _, a := range p.Addrs {
		d := net.Dialer{Timeout: probeTimeout / time.Duration(len(p.Addrs)+1)}
		if conn, err = d.DialContext(ctx, network, net.JoinHostPort(a.String(), p.port())); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// https requests the path with which clients measure the latency.
func (p *probe) https(ctx context.Context) (time.Duration, error) {
	var sent, answered time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The request is sent at once. WroteRequest is called by another goroutine, possibly after the response.
		GotConn:              func(httptrace.GotConnInfo) { sent = time.Now() },
		GotFirstResponseByte: func() { answered = time.Now() },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.JoinPath("/derp/probe").String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := p.client().Do(req)
	if err != nil {
		return 0, p.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s responds with HTTP status %d: check that the URL is that of the relay, and that a proxy in front of it passes on /derp", req.URL, resp.StatusCode)
	}
	return answered.Sub(sent), nil
}

// explain says what to do about an error of an HTTP request.
func (p *probe) explain(err error) error {
	var dns *net.DNSError
	var invalid *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var failed *url.Error
	if errors.As(err, &failed) { // it repeats the URL
		err = failed.Err
	}
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("cannot resolve %s: %s: correct its DNS records, or --url of the relay", p.url.Hostname(), dns.Err)
	case errors.As(err, &invalid):
		return fmt.Errorf("this server does not accept the certificate of %s, and devices will not either: %w", p.url.Hostname(), invalid.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("TCP port %s of %s does not speak TLS: give the relay a certificate, or put a proxy with one in front of it", p.port(), p.url.Hostname())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no response from TCP port %s of %s within %v: check that the relay runs and that firewalls allow this port", p.port(), p.url.Hostname(), probeTimeout)
	}
	return fmt.Errorf("cannot connect to TCP port %s of %s: %w: check that the relay runs and that firewalls allow this port", p.port(), p.url.Hostname(), err)
}

// derp upgrades a connection as clients do, and reads the relay's key.
func (p *probe) derp(ctx context.Context) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.JoinPath("/derp").String(), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Upgrade", "DERP")
	req.Header.Set("Connection", "Upgrade")
	began := time.Now()
	resp, err := p.client().Do(req)
	if err != nil {
		return 0, p.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return 0, fmt.Errorf("no upgrade to DERP, but HTTP status %d: let the proxy in front of the relay pass on the Upgrade header", resp.StatusCode)
	}
	took := time.Since(began)
	stop := context.AfterFunc(ctx, func() { _ = resp.Body.Close() }) // after an upgrade, the end of ctx does not interrupt reading
	defer stop()
	return took, p.serverKey(resp.Body)
}

// webSocket opens a WebSocket as clients in browsers do, and reads the relay's key.
func (p *probe) webSocket(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	ws, resp, err := websocket.Dial(ctx, p.url.JoinPath("/derp").String(), &websocket.DialOptions{HTTPClient: p.client(), Subprotocols: []string{"derp"}}) //nolint:bodyclose // Dial replaces it, or ws owns it
	switch {
	case err != nil && resp != nil:
		return 0, fmt.Errorf("no upgrade to a WebSocket, but HTTP status %d: let the proxy in front of the relay pass on WebSockets", resp.StatusCode)
	case err != nil:
		return 0, p.explain(err)
	}
	took := time.Since(began)
	conn := websocket.NetConn(ctx, ws, websocket.MessageBinary)
	defer func() { _ = ws.CloseNow() }()
	return took, p.serverKey(conn)
}

// serverKey reads the first frame of a relay, which contains its key.
func (p *probe) serverKey(from io.Reader) error {
	br := bufio.NewReader(io.LimitReader(from, maxServerKey))
	size, err := derp.ReadFrameTypeHeader(br, derp.FrameServerKey)
	frame := make([]byte, len(derp.Magic)+key.NodePublicRawLen)
	if err == nil && int64(size) < int64(len(frame)) {
		err = errors.New("the frame is too short")
	}
	if err == nil {
		_, err = io.ReadFull(br, frame)
	}
	if err != nil || string(frame[:len(derp.Magic)]) != derp.Magic {
		return fmt.Errorf("something other than a relay responds: check --url of the relay (%w)", errors.Join(err, errNoRelay))
	}
	if found := key.NodePublicFromRaw32(mem.B(frame[len(derp.Magic):])); found != p.Key {
		return errors.New("another relay responds at this URL: check its DNS records and --url of the relay")
	}
	return nil
}

var errNoRelay = errors.New("its first frame is not that of a relay")

// stun sends STUN requests until one is answered.
func (p *probe) stun(ctx context.Context) (time.Duration, error) {
	port := p.STUNPort
	if port == 0 {
		port = defaultSTUN
	}
	addrs, err := p.resolve(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot resolve %s: correct its DNS records, or --url of the relay", p.url.Hostname())
	}
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", ":0")
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	began := make(map[stun.TxID]time.Time, stunAttempts)
	buf := make([]byte, 1500)
	for range stunAttempts {
		id := stun.NewTxID()
		began[id] = time.Now()
		for _, a := range addrs {
			// An address of a family that this machine does not have cannot be reached, but another may.
			_, _ = conn.WriteTo(stun.Request(id), net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(port))))
		}
		_ = conn.SetReadDeadline(time.Now().Add(stunWait))
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				break
			}
			id, _, err := stun.ParseResponse(buf[:n])
			if sent, ok := began[id]; ok && err == nil {
				return time.Since(sent), nil
			}
		}
	}
	return 0, fmt.Errorf("no response to STUN from UDP port %s of %s: let firewalls allow this port, correct --stun-port of the relay, or turn STUN off with --stun-listen \"\"", strconv.Itoa(port), p.url.Hostname())
}

// resolve returns the addresses of the relay.
func (p *probe) resolve(ctx context.Context) ([]netip.Addr, error) {
	const most = 8
	if len(p.Addrs) > 0 {
		return p.Addrs, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.url.Hostname())
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs[:min(len(addrs), most)], err
}
