package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// dial serves h on one connection in memory, using the test's clock.
func dial(t *testing.T, h http.HandlerFunc) (*http.Server, net.Conn) {
	t.Helper()
	caller, l := waittest.Caller()
	server, ended := newServer(h, slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = caller.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return server, caller
}

func ok(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/read" {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	_, _ = io.WriteString(w, "ok")
}

// send sends a request and reports whether the connection closes after the response.
func send(t *testing.T, c net.Conn, request string) bool {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "ok" {
		t.Fatalf("%q, %v", body, err)
	}
	return res.Close
}

func TestAnswerDoesNotWaitForABodyThatNobodyReads(t *testing.T) {
	for _, head := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "Content-Length: 1000000\r\n\r\n{"} {
		waittest.Bubble(t, func(t *testing.T) {
			begin := time.Now()
			_, c := dial(t, ok)
			if closes := send(t, c, "POST / HTTP/1.1\r\nHost: x\r\n"+head); !closes || time.Since(begin) != 0 {
				t.Errorf("close %t after %v", closes, time.Since(begin))
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) > unreadTimeout {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	}
}

func TestBodyThatWasReadKeepsTheConnection(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		_, c := dial(t, ok)
		for range 3 {
			if send(t, c, "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}") {
				t.Error("the connection ends")
			}
			// Longer than the request timeout, but shorter than the idle timeout.
			<-time.After(requestTimeout + time.Minute)
		}
		send(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		begin := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) != 2*time.Minute {
			t.Errorf("an idle connection: %v after %v", err, time.Since(begin))
		}
	})
}

func TestBodyThatDoesNotComeEndsWithTheRequestsTime(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		begin := time.Now()
		_, c := dial(t, ok)
		send(t, c, "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
		if took := time.Since(begin); took != requestTimeout {
			t.Errorf("answered after %v", took)
		}
	})
}

func TestCallerThatDoesNotReadIsCutOff(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		begin := time.Now()
		_, c := dial(t, ok)
		_, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 10_000))
		if took := time.Since(begin); !errors.Is(err, io.ErrClosedPipe) || took != 2*requestTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestStopDoesNotWaitForACallerThatDoesNotRead(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		server, c := dial(t, ok)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		if err := server.Shutdown(t.Context()); err != nil || time.Since(begin) > lastWrites+time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestStopLetsALateAnswerLeave(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		server, c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			<-time.After(2 * lastWrites)
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			ok(w, r)
		})
		stopped := make(chan error, 1)
		time.AfterFunc(time.Second, func() { stopped <- server.Shutdown(context.Background()) })
		send(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

func TestStreamMayLiftTheDeadlines(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		_, c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil {
				t.Error(err)
			}
			for i := range 10 {
				<-time.After(requestTimeout)
				fmt.Fprint(w, i)
				if err := errors.Join(rc.Flush(), r.Context().Err()); err != nil {
					t.Error(err)
				}
			}
		})
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "0123456789" {
			t.Errorf("%q, %v", body, err)
		}
	})
}
