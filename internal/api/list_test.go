package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// crowded returns a service with this many thousand nodes.
func crowded(t *testing.T, thousands int) *service {
	t.Helper()
	s := sqlite(t)
	for n := range thousands {
		_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(*policy.World, mesh.Time) ([]mesh.Event, error) {
			evs := []mesh.Event{mesh.UserPut{User: meshgen.User(1)}}
			for i := range 1_000 {
				evs = append(evs, mesh.NodePut{Node: meshgen.Node(mesh.NodeID(1_000*n+i+1), 1)})
			}
			return evs, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// stalled is a response writer that measures the memory in use at the first write.
type stalled struct {
	*httptest.ResponseRecorder
	heap uint64
	err  error
}

func (w *stalled) Write(b []byte) (int, error) {
	if w.heap == 0 {
		w.heap = heap()
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.ResponseRecorder.Write(b)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLargeListNeedsLittleMemory(t *testing.T) {
	s := crowded(t, 5)
	req := newRequest(t, "GET", "/api/v1/node")
	s.dress(req, nil)
	w := &stalled{ResponseRecorder: httptest.NewRecorder()}
	before := heap()
	s.handler.ServeHTTP(w, req)
	if w.heap > before+1<<20 {
		t.Errorf("%d kB are held while the reader does not read", (w.heap-before)>>10)
	}
	var list struct{ Nodes []struct{ ID string } }
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Nodes) != 5_000 || list.Nodes[4_999].ID != "5000" {
		t.Errorf("%d nodes, %v", len(list.Nodes), err)
	}
}

func TestListThatCannotBeWrittenIsCutOff(t *testing.T) {
	s := crowded(t, 1)
	req := newRequest(t, "GET", "/api/v1/node")
	s.dress(req, nil)
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // net/http compares with ==
			t.Errorf("recovered %v", p)
		}
	}()
	s.handler.ServeHTTP(&stalled{ResponseRecorder: httptest.NewRecorder(), err: errors.New("gone")}, req)
}

func TestLargeListArrivesOverASlowLine(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := crowded(t, 1)
		caller, l := waittest.Caller()
		server := &http.Server{Handler: s.handler, WriteTimeout: time.Minute}
		run(t, func(context.Context) error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		defer server.Close()
		defer caller.Close()
		begin := time.Now()
		fmt.Fprintf(caller, "GET /api/v1/node HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", s.key)
		res, err := http.ReadResponse(bufio.NewReader(&slowLine{caller}), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || !json.Valid(body) || time.Since(begin) < 2*time.Minute {
			t.Errorf("%d bytes after %v: %v", len(body), time.Since(begin), err)
		}
	})
}

// slowLine lets 4 KiB through per second.
type slowLine struct{ net.Conn }

func (l *slowLine) Read(b []byte) (int, error) {
	<-time.After(time.Second)
	return l.Conn.Read(b[:min(len(b), 4<<10)])
}
