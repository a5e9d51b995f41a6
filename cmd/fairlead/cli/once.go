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

// retryPause lets a server that restarts, or another in its place, begin to listen.
const retryPause = 500 * time.Millisecond

// once sends each change with a key of its own. One whose answer is lost on the way it
// sends again, a single time: the server makes it once all the same.
type once struct{ http.RoundTripper }

func (o once) RoundTrip(req *http.Request) (*http.Response, error) {
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
		req.Body, _ = req.GetBody() // it is in memory
	}
	again, failed := o.whole(req)
	if failed != nil {
		return nil, err // which says more than that the server is still away
	}
	return again, nil
}

// whole returns an answer when all of it is there.
func (o once) whole(req *http.Request) (*http.Response, error) {
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

// lost reports whether the connection ended before the answer did.
func lost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
