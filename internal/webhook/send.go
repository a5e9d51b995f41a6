package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	attemptTimeout = 10 * time.Second
	// replyLimit is how much of a response is shown to people. maxReply is how much is
	// read, so that the connection can be reused.
	replyLimit = 512
	maxReply   = 16 << 10
	maxHeader  = 64 << 10
)

// newClient returns a client that connects only to receivers: it uses no proxy, follows no
// redirects, and rejects local addresses unless they are allowed. Addresses are checked
// when the connection is made, because a name can resolve to another address later.
func newClient(allowLocal bool, local func(netip.Addr) bool) *http.Client {
	dialer := &net.Dialer{Timeout: attemptTimeout}
	if !allowLocal {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err == nil && local(at.Addr()) {
				err = fmt.Errorf("%s: %w", at.Addr(), errLocal)
			}
			return err
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: attemptTimeout,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errLocal = errors.New("the receiver has a local address or an address of the mesh; set webhooks.allow_local to allow it")

// Deliver sends one event to the receiver of a webhook, without retries.
func (c *Sender) Deliver(ctx context.Context, w *mesh.Webhook, row history.AuditRow) (answer control.WebhookAnswer) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	began := time.Now()
	defer func() { answer.Took = time.Since(began) }()
	body := c.encode(row)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		answer.Problem = withoutURL(err)
		return answer
	}
	timestamp := strconv.FormatInt(began.Unix(), 10)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": c.userAgent,
		"Mesh-Webhook-Id": w.ID.String(), "Mesh-Event-Id": control.EventID(row), "Mesh-Event": control.EventName(row),
		"Mesh-Timestamp": timestamp, "Mesh-Signature": sign(c.secret(w.Salt), timestamp, body),
	} {
		req.Header.Set(name, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		answer.Problem = withoutURL(err)
		return answer
	}
	defer resp.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(resp.Body, maxReply)) // an error while reading changes nothing
	answer.Status, answer.Reply = resp.StatusCode, printable(reply)
	switch resp.StatusCode / 100 {
	case 2:
		answer.Delivered = true
	case 3:
		answer.Problem = statusText(resp.StatusCode) + "; redirects are not followed, use the target URL"
	default:
		answer.Problem = statusText(resp.StatusCode)
	}
	return answer
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// sign signs an event and the time it is sent, so that receivers can verify both.
func sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// withoutURL returns the text of an error of the HTTP client without the URL. A URL may
// contain secrets of its receiver, and a receiver's response may repeat it.
func withoutURL(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		if outer.Timeout() {
			return fmt.Sprintf("no response within %v", attemptTimeout)
		}
		err = outer.Err
	}
	text, _, _ := strings.Cut(err.Error(), `"`)
	text, _, _ = strings.Cut(text, "header line:")
	return printable([]byte(text))
}

// printable returns the beginning of a text, safe for logs, terminals and both databases.
func printable(text []byte) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(text[:min(replyLimit, len(text))]), ""))
	return strings.Join(strings.Fields(clean), " ")
}
