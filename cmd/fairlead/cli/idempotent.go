package cli

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"
)

// retryPause gives a restarting server, or its replacement, time to listen.
const retryPause = 500 * time.Millisecond

// idempotent sends each change with its own idempotency key. If the response is lost, it retries once; the server
// then does not repeat the change.
type idempotent struct{ http.RoundTripper }

func (o idempotent) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return o.RoundTripper.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", rand.Text())
	resp, err := o.whole(req)
	if !lost(err) {
		return resp, err
	}
	select {
	case <-req.Context().Done():
		return nil, err
	case <-time.After(retryPause):
	}
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // the body is in memory
	}
	again, failed := o.whole(req)
	if failed != nil {
		return nil, err // more specific than the fact that the server is still unreachable
	}
	return again, nil
}

// whole returns a response whose body has been read completely.
func (o idempotent) whole(req *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// lost reports whether the connection ended before the response did.
func lost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
