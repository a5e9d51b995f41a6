package bff

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// transport responds in place of the network, which cannot be used in a synctest bubble.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// readOnSlowLine requests the list of nodes over a connection that delays each
// part, and returns what arrived and how long it took.
func readOnSlowLine(t *testing.T, body []byte, each time.Duration) (got []byte, took time.Duration, err error) {
	t.Helper()
	s, err := New(Config{CoordinatorURL: "http://service", CookieSecret: cookieSecret}, "v1", testBundle(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.upstream.http.Transport = transport(func(r *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	})
	cookie, err := s.seals.seal(cookieName, newSession("flk_a_b", &apiclient.Caller{}, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	near, listener := waittest.Caller()
	defer near.Close()
	server := &http.Server{Handler: s.Handler(), WriteTimeout: writeTimeout}
	go server.Serve(listener) //nolint:errcheck // returns on Close
	defer server.Close()
	began := time.Now()
	request := "GET /admin/api/v1/node HTTP/1.1\r\nHost: console\r\nConnection: close\r\nCookie: " + cookieName + "=" + cookie + "\r\n\r\n"
	if _, err := io.Copy(near, strings.NewReader(request)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, partSize); ; <-time.After(each) {
		n, err := near.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			_, got, _ = bytes.Cut(got, []byte("\r\n\r\n"))
			return got, time.Since(began), err
		}
	}
}

func TestASlowLineGetsAllOfAnAnswerAndOneThatStandsStillIsLetGo(t *testing.T) {
	body := bytes.Repeat([]byte(`{"node":"1"}`), 120_000) // the size of a page of a thousand nodes
	waittest.Bubble(t, func(t *testing.T) {
		got, took, _ := readOnSlowLine(t, body, 5*time.Second)
		if took < writeTimeout+bodyTimeout {
			t.Fatalf("it took only %v", took)
		}
		if diff := cmp.Diff(len(body), len(got)); diff != "" || !bytes.Equal(body, got) {
			t.Errorf("after %v (-want +got bytes):\n%s", took, diff)
		}
	})
	waittest.Bubble(t, func(t *testing.T) {
		if got, took, _ := readOnSlowLine(t, body, time.Hour); len(got) >= len(body) || took > 3*time.Hour {
			t.Errorf("after %v of standing still %d bytes have arrived", took, len(got))
		}
	})
}
