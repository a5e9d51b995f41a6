package webhook_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/webhook"
)

func TestReceiverOnThisMachineIsRefused(t *testing.T) {
	r := start(t, sqlite(t), func(c *webhook.Config) { c.AllowLocal = false })
	w, rec := r.hook()
	port := rec.server.URL[strings.LastIndexByte(rec.server.URL, ':')+1:]
	hosts := []string{"127.0.0.1", "127.8.8.8", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]", "224.0.0.1", "100.64.0.1", "[64:ff9b::7f00:1]"}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range own {
		if a := netip.MustParsePrefix(at.String()).Addr(); a.Is4() {
			hosts = append(hosts, a.String())
		}
	}
	for _, host := range hosts {
		to := *w
		to.URL = "http://" + host + ":" + port
		answer := r.courier.Deliver(t.Context(), &to, test())
		if answer.Delivered || answer.Status != 0 || !strings.Contains(answer.Problem, "webhooks.allow_local") && host != "[fe80::1]" {
			t.Errorf("%s: %+v", host, answer)
		}
	}
	if n := rec.requests(); n != 0 {
		t.Errorf("%d requests came", n)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	r := start(t, sqlite(t))
	_, elsewhere := r.hook()
	w, rec := r.hook()
	rec.mu.Lock()
	rec.status, rec.header = http.StatusTemporaryRedirect, map[string]string{"Location": elsewhere.server.URL}
	rec.mu.Unlock()
	answer, err := r.Webhooks.Test(t.Context(), admin, w.ID)
	if err != nil || answer.Delivered || answer.Status != http.StatusTemporaryRedirect || !strings.Contains(answer.Problem, "not followed") {
		t.Errorf("%+v (%v)", answer, err)
	}
	elsewhere.mu.Lock()
	defer elsewhere.mu.Unlock()
	for _, name := range elsewhere.names {
		if name == control.EventTest {
			t.Error("it was followed")
		}
	}
}

func TestTestComesWhateverIsAskedFor(t *testing.T) {
	r := start(t, sqlite(t))
	w, rec := r.hook("policy.*")
	if _, err := r.Webhooks.Change(t.Context(), admin, w.ID, control.WebhookChange{Enabled: new(false)}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if answer, err := r.Webhooks.Test(t.Context(), admin, w.ID); err != nil || !answer.Delivered || answer.Status != http.StatusNoContent || answer.Took <= 0 {
			t.Errorf("%+v (%v)", answer, err)
		}
	}
	if got, again := rec.has(); len(got) != 2 || again != 0 || rec.names[0] != control.EventTest {
		t.Errorf("came %v", rec.taken)
	}
}

func TestProblemsRepeatNothingOfTheReceiver(t *testing.T) {
	r := start(t, sqlite(t))
	w, _ := r.hook()
	for _, reply := range []string{
		"path-with-token\r\n\r\n",
		"HTTP/1.1 path-with-token\r\n\r\n",
		"HTTP/1.1 500 path-with-token\r\n\r\n",
		"HTTP/1.1 200 OK\r\npath-with-token\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: path-with-token\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: path-with-token\r\n\r\n",
		"HTTP/1.1 307 Moved\r\nLocation: :path-with-token\r\nContent-Length: 0\r\n\r\n",
	} {
		rec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(reply)) // Deliver reports a failure
		}))
		to := *w
		to.URL = rec.URL + "/path-with-token"
		if answer := r.courier.Deliver(t.Context(), &to, test()); answer.Delivered || answer.Problem == "" || strings.Contains(answer.Problem, "path-with-token") {
			t.Errorf("%q: %+v", reply, answer)
		}
		rec.Close()
	}
}

func TestReceiverIsTestedOnceAtATime(t *testing.T) {
	r := start(t, sqlite(t))
	w, _ := r.hook()
	asked, answer := make(chan struct{}), make(chan struct{})
	rec := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	defer rec.Close()
	if _, err := r.Webhooks.Change(t.Context(), admin, w.ID, control.WebhookChange{URL: &rec.URL, Events: &[]string{"policy.*"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second test is possible once the first has ended
		var first sync.WaitGroup
		first.Go(func() {
			if a, err := r.Webhooks.Test(t.Context(), admin, w.ID); err != nil || !a.Delivered {
				t.Errorf("%+v (%v)", a, err)
			}
		})
		<-asked
		_, err := r.Webhooks.Test(t.Context(), admin, w.ID)
		if refused, ok := errors.AsType[*control.Refusal](err); !ok || refused.Reason != control.Conflict {
			t.Errorf("the second is answered %v", err)
		}
		answer <- struct{}{}
		first.Wait()
	}
}

func TestSecretsAreShownOnce(t *testing.T) {
	r := start(t, sqlite(t))
	w, rec := r.hook()
	before := rec.secret
	_, after, err := r.Webhooks.Rotate(t.Context(), admin, w.ID)
	if err != nil || before == after || !strings.HasPrefix(after, "flw_") || len(after) < 40 {
		t.Fatalf("%q became %q (%v)", before, after, err)
	}
	rec.mu.Lock()
	rec.secret = ""
	rec.mu.Unlock()
	rec.server.Close() // connection errors contain the address
	if answer, err := r.Webhooks.Test(t.Context(), admin, w.ID); err != nil || answer.Problem == "" || strings.Contains(answer.Problem, "path-with-token") {
		t.Errorf("%+v (%v)", answer, err)
	}
	r.user("anna")
	eventually(t, patience, "the failure is logged", func() bool { return strings.Contains(r.log.String(), "webhook delivery failed") })
	rows, _, err := r.History.Audit(t.Context(), history.AuditQuery{Kinds: []string{"webhook"}})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d changes of the webhook (%v)", len(rows), err)
	}
	var events string
	for _, row := range rows {
		events += string(row.Before) + string(row.After)
	}
	for name, text := range map[string]string{"log": r.log.String(), "audit": events} {
		for _, secret := range []string{before, after, "path-with-token", r.webhook(w.ID).Salt} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s tells %s", name, secret)
			}
		}
	}
}
