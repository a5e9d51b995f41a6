package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsResumeAfterTheLastOneWhateverBreaks(t *testing.T) {
	var mu sync.Mutex
	var asked []string // guarded by mu
	problem := func(w http.ResponseWriter, status int, detail string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"detail":%q}`, detail)
	}
	event := func(w io.Writer, id int) {
		fmt.Fprintf(w, "retry: 1\n\nid: %d-0\nevent: user.created\ndata: {\"id\":\"%d-0\"}\n\n", id, id)
	}
	socket, _ := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		switch len(asked) {
		case 1:
			event(w, 1)
		case 2:
			event(w, 2)
			fmt.Fprint(w, "id: 3-0\nevent: user.created\ndata: {") // the connection breaks here
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case 3:
			problem(w, http.StatusServiceUnavailable, "the server is shutting down")
		case 4:
			event(w, 3)
			fmt.Fprint(w, ": heartbeat\n\nid: 9-2147483647\n\n")
		default:
			problem(w, http.StatusUnauthorized, "Authentication failed: invalid API key")
		}
	}))
	r := fairlead(t, socket, []string{"events", "--output", "json"})
	mu.Lock()
	defer mu.Unlock()
	want := `{"id":"1-0","event":"user.created","data":{"id":"1-0"}}
{"id":"2-0","event":"user.created","data":{"id":"2-0"}}
{"id":"3-0","event":"user.created","data":{"id":"3-0"}}
`
	if diff := cmp.Diff(want, r.stdout.String()); diff != "" || r.status != 1 {
		t.Errorf("status %d, %s (-want +got):\n%s", r.status, &r.stderr, diff)
	}
	if diff := cmp.Diff([]string{"", "1-0", "2-0", "2-0", "9-2147483647"}, asked); diff != "" {
		t.Errorf("resumed after (-want +got):\n%s", diff)
	}
}

func TestEventsOfAServerThatIsNotThereFailAtOnce(t *testing.T) {
	if r := fairlead(t, "/nowhere", []string{"events"}); r.status != 1 || !strings.Contains(r.stderr.String(), "no server is listening") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
}

func TestInterruptedEventsEndWithoutAnError(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	socket, _ := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		interrupt()
		<-r.Context().Done()
	}))
	env := Env{Stdout: io.Discard, Stderr: io.Discard, Environ: []string{"FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_UNIX_SOCKET=" + socket}}
	if status := Execute(ctx, New(env), []string{"events"}); status != 0 {
		t.Errorf("status %d", status)
	}
}
