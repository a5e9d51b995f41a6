package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
)

// FuzzResumeEvents: a stream resumes after a valid position or sends a reset; an invalid
// position is a bad request.
func FuzzResumeEvents(f *testing.F) {
	s := sqlite(f)
	for i := range 10 {
		s.direct(s.handler, "POST", "/api/v1/user", object{"name": fmt.Sprintf("user%d", i)}).ok()
	}
	for _, text := range []string{"0-0", "3-0", "3-7", "999999-0", "-1-0", "1", "1-", "-", "9223372036854775807-2147483647", "01-0", " 3-0", "3-0\x00", "٣-0"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, query bool) {
		after, err := history.ParsePosition(text)
		if text == "" {
			t.Skip() // without a position, the stream starts now
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events", nil)
		s.dress(r, nil)
		if query {
			q := r.URL.Query()
			q.Set("after", text)
			r.URL.RawQuery = q.Encode()
		} else {
			r.Header.Set("Last-Event-ID", text)
		}
		w := brief{httptest.NewRecorder(), cancel}
		s.handler.ServeHTTP(w, r)
		if err != nil {
			if w.Code != http.StatusBadRequest {
				t.Fatalf("%q: %d %s", text, w.Code, w.Body)
			}
			return
		}
		if w.Code != http.StatusOK {
			t.Fatalf("%q: %d %s", text, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "event: reset\n") {
			return
		}
		for lines := bufio.NewScanner(bytes.NewReader(w.Body.Bytes())); lines.Scan(); {
			id, ok := strings.CutPrefix(lines.Text(), "id: ")
			if !ok {
				continue
			}
			at, err := history.ParsePosition(id)
			if err != nil || at.Compare(after) < 0 {
				t.Fatalf("after %s comes %s, %v\n%s", after, id, err, w.Body)
			}
		}
	})
}

// brief ends a stream shortly after its first write.
type brief struct {
	*httptest.ResponseRecorder
	end func()
}

func (b brief) Write(data []byte) (int, error) {
	time.AfterFunc(20*time.Millisecond, b.end)
	return b.ResponseRecorder.Write(data)
}
