//go:build !race

package hostiletest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"tailscale.com/control/controlbase"
	"tailscale.com/control/controlhttp/controlhttpcommon"
	"tailscale.com/types/key"
)

// units returns the units that attacks consist of, by name. Their number, rate and origin are in attacks_test.go.
func units() map[string]unit {
	const brokenHandshake = "?" + controlhttpcommon.HandshakeHeaderName + "=AAAA"
	return map[string]unit{
		"WebSocket without subprotocol": upgradeUnit("/ts2021", "", ""),
		"WebSocket with half a frame":   upgradeUnit("/ts2021", "", halfFrame),
		"broken upgrade of every kind": mix(
			upgradeUnit("/ts2021", "", ""),
			upgradeUnit("/ts2021", "", halfFrame),
			upgradeUnit("/ts2021", subprotocol, halfFrame),
			upgradeUnit("/ts2021"+brokenHandshake, subprotocol, halfFrame),
			upgradeUnit("/derp", "", ""),
			upgradeUnit("/derp", "", halfFrame),
			halfHandshake,
		),
		"upgrade that is never read":                       unreadUpgrade,
		"idle connection":                                  idle,
		"slow client on every route":                       mix(slowHeaders, slowBody, slowReader),
		"silent Noise stranger":                            mix(silentStranger, halfRecord),
		"half request or unread answer on machine routes":  mix(halfRequests, unreadAnswers),
		"handshake":                                        handshake,
		"20 joins without a key":                           joinUnit(""),
		"20 joins with a bad key":                          joinUnit(unknownKey),
		"join with a bad key over the API":                 badJoin,
		"login that waits":                                 waitingLogin,
		"bad API key":                                      badAPIKey,
		"health":                                           healthRequest,
		"oversized body or compressed bomb on every route": mix(oversized, bombOnRoute),
		"oversized body or bomb on machine routes":         mix(oversizedInside, bombInside),
		"console login":                                    consoleLogin,
	}
}

// mix alternates between units.
func mix(all ...unit) unit {
	var n atomic.Int64
	return func(ctx context.Context, a *attacker) string {
		return all[int(n.Add(1))%len(all)](ctx, a)
	}
}

const (
	subprotocol = "Sec-WebSocket-Protocol: tailscale-control-protocol\r\n"
	// halfFrame is the header of a masked data frame that announces a gibibyte.
	halfFrame = "\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00"
	host      = "Host: mesh.example\r\n"

	// These keys have the right format but do not exist.
	unknownKey    = "flp_b81KzQx0LmN4_Yt7RkPz2mWq9XcV4bN6sDfGhJ1lAoEiU3yTrQwZxKvM8Cn5"
	unknownAPIKey = "flk_b81KzQx0LmN4_Yt7RkPz2mWq9XcV4bN6sDfGhJ1lAoEiU3yTrQwZxKvM8Cn5"
)

// upgradeUnit upgrades to a WebSocket, sends part of a frame, and waits.
func upgradeUnit(path, header, frame string) unit {
	return func(ctx context.Context, a *attacker) string {
		return a.upgradeAndHold(ctx, "GET "+path+" HTTP/1.1\r\n"+host+"Connection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+header+"\r\n"+frame)
	}
}

func (a *attacker) sendAndHold(ctx context.Context, text string) string {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		c.Close()
		return cause(err)
	}
	return a.hold(c)
}

// upgradeAndHold is sendAndHold for a request that may get a plain response instead of an upgrade. It
// does not wait any longer after a plain response, because nginx decides what happens to that connection.
func (a *attacker) upgradeAndHold(ctx context.Context, text string) (outcome string) {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		return cause(err)
	}
	a.silence(func() error {
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			outcome = cause(err)
			return err
		}
		res.Body.Close()
		if outcome = strconv.Itoa(res.StatusCode); res.StatusCode == http.StatusSwitchingProtocols {
			_, err = io.Copy(io.Discard, in)
		}
		return err
	})
	return outcome
}

// unreadUpgrade starts a valid upgrade and never reads the response.
func unreadUpgrade(ctx context.Context, a *attacker) string {
	c, err := a.deaf(ctx)
	if err != nil {
		return cause(err)
	}
	defer c.Close()
	hello, _, err := controlbase.ClientDeferred(key.NewMachine(), a.Noise, 120)
	if err != nil {
		return err.Error()
	}
	if _, err := io.WriteString(c, upgradeText(hello)); err != nil {
		return cause(err)
	}
	return a.awaitEnd(ctx, c)
}

func upgradeText(hello []byte) string {
	return fmt.Sprintf("POST /ts2021 HTTP/1.1\r\n%sUpgrade: %s\r\nConnection: upgrade\r\n%s: %s\r\nContent-Length: 0\r\n\r\n",
		host, controlhttpcommon.UpgradeHeaderValue, controlhttpcommon.HandshakeHeaderName, base64.StdEncoding.EncodeToString(hello))
}

// halfHandshake sends the first half of the client's first message.
func halfHandshake(ctx context.Context, a *attacker) string {
	hello, _, err := controlbase.ClientDeferred(key.NewMachine(), a.Noise, 120)
	if err != nil {
		return err.Error()
	}
	return a.upgradeAndHold(ctx, upgradeText(hello[:len(hello)/2]))
}

func idle(ctx context.Context, a *attacker) string { return a.sendAndHold(ctx, "") }

// targets returns the rows of the attacked program.
func (a *attacker) targets() []row {
	if a.Console {
		return consoleRows()
	}
	return publicRows()
}

// route returns the targets in turn.
func (a *attacker) route() row {
	rows := a.targets()
	return rows[int(a.next.Add(1))%len(rows)]
}

func (r row) head() string { return r.method + " " + r.path + " HTTP/1.1\r\n" + host + r.header }

func slowHeaders(ctx context.Context, a *attacker) string {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	if _, err := io.WriteString(c, a.route().head()+"X-"); err != nil {
		return cause(err)
	}
	return a.trickle(ctx, c, "x", time.Second)
}

func slowBody(ctx context.Context, a *attacker) string {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	r := a.route()
	if _, err := io.WriteString(c, r.head()+"Content-Length: 1000\r\n\r\n"+r.body); err != nil {
		return cause(err)
	}
	return a.trickle(ctx, c, "x", time.Second)
}

// slowReader sends one request after another and reads nothing.
func slowReader(ctx context.Context, a *attacker) string {
	c, err := a.deaf(ctx)
	if err != nil {
		return cause(err)
	}
	defer c.Close()
	r := a.route()
	text := r.head() + "Content-Length: 0\r\n\r\n"
	if err := c.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return cause(err)
	}
	_, err = io.WriteString(c, strings.Repeat(text, 1<<20/len(text)))
	if outcome := cause(err); outcome != "no answer" {
		return outcome
	}
	return a.awaitEnd(ctx, c)
}

// awaitEnd waits, without reading, until the server closes the connection. The time is not
// measured, because the server may close it without the client's system noticing.
func (a *attacker) awaitEnd(ctx context.Context, c net.Conn) string {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return cause(err)
	}
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return "never ended"
		case <-tick.C:
		}
		var info *unix.TCPInfo
		if ended := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ended != nil {
			return cause(ended)
		}
		if err != nil || info.State != established {
			tick.Stop()
			return "cut off"
		}
	}
}

const established = 1 // TCP_ESTABLISHED

// oversized sends a body of 64 MiB for as long as the server accepts it.
func oversized(ctx context.Context, a *attacker) string {
	r := a.route()
	return a.pour(ctx, r.head()+"Content-Length: 67108864\r\n\r\n"+r.body, bytes.Repeat([]byte("x"), 64<<10), 1024)
}

// pour sends a request whose body is a block repeated many times.
func (a *attacker) pour(ctx context.Context, head string, block []byte, times int) string {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := io.WriteString(c, head)
		for i := 0; i < times && err == nil; i++ {
			_, err = c.Write(block)
		}
	})
	outcome := answer(c)
	sending.Wait()
	return outcome
}

// bombOnRoute sends 10 KiB that decompress to 10 MiB.
func bombOnRoute(ctx context.Context, a *attacker) string {
	r, packed := a.route(), bomb()
	return a.pour(ctx, fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", r.head(), len(packed)), packed, 1)
}

// bomb returns a decompression bomb that starts like JSON.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(append([]byte(`{"key":"`), bytes.Repeat([]byte("x"), 10<<20)...)) // writing to a buffer cannot fail
	_ = z.Close()
	return b.Bytes()
})

// request sends one request on its own connection.
func (a *attacker) request(ctx context.Context, method, path, header, body string) string {
	c, err := a.dial(ctx)
	if err != nil {
		return cause(err)
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\n%s%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", method, path, host, header, len(body), body); err != nil {
		c.Close()
		return cause(err)
	}
	return answer(c)
}

func badAPIKey(ctx context.Context, a *attacker) string {
	return a.request(ctx, http.MethodGet, "/api/v1/node", "Authorization: Bearer "+unknownAPIKey+"\r\n", "")
}

func badJoin(ctx context.Context, a *attacker) string {
	return a.request(ctx, http.MethodPost, "/api/v1/machine", "Content-Type: application/json\r\n",
		fmt.Sprintf(`{"preAuthKey":%q,"machineKey":%q,"nodeKey":%q,"hostname":"x"}`, unknownKey, key.NewMachine().Public(), key.NewNode().Public()))
}

func healthRequest(ctx context.Context, a *attacker) string {
	return a.request(ctx, http.MethodGet, "/health", "", "")
}

// consoleLogin fetches the login form and submits it with a key that has the right format but does not exist.
func consoleLogin(ctx context.Context, a *attacker) string {
	return strconv.Itoa(signIn(ctx, a.Target, a.source(), unknownAPIKey))
}

// signIn signs in to a console from an address and returns the status of the response: 303 if the
// key is valid.
func signIn(ctx context.Context, console string, from net.IP, apiKey string) int {
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext},
	}
	send := func(method, form string, cookies []*http.Cookie) (status int, got []*http.Cookie, page []byte) {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+console+"/admin/login", strings.NewReader(form))
		if err != nil {
			return 0, nil, nil
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "http://"+console)
		for _, c := range cookies {
			req.AddCookie(c)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, nil, nil
		}
		defer res.Body.Close()
		page, _ = io.ReadAll(res.Body)
		return res.StatusCode, res.Cookies(), page
	}
	_, cookies, page := send(http.MethodGet, "", nil)
	token := formToken.FindSubmatch(page)
	if token == nil {
		return 0
	}
	status, _, _ := send(http.MethodPost, url.Values{"token": {html.UnescapeString(string(token[1]))}, "key": {apiKey}}.Encode(), cookies)
	return status
}

var formToken = regexp.MustCompile(`name="token" value="([^"]*)"`)
