package apiclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func TestAnswersAreReadByStatusAndType(t *testing.T) {
	for _, c := range []struct {
		status          int
		mediaType, body string
		want            string // JSON200 and Problem, or an error
	}{
		{200, "application/json", `{"name": "ada"}`, "ada -"},
		{200, "application/json; charset=utf-8", `{"name": "ada"}`, "ada -"},
		{200, "text/html", `<p>`, "- -"},
		{200, "application/json", `<p>`, "failed"},
		{401, "application/problem+json", `{"detail": "invalid key"}`, "- invalid key"},
		{409, "application/json", `{"detail": "taken"}`, "- taken"},
		{401, "text/plain", `Unauthorized`, "- -"},
		{502, "application/json", `<p>`, "failed"},
		{503, "application/health+json", `{"status": "fail"}`, "- -"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.mediaType)
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		client, err := apiclient.NewClientWithResponses(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.WhoamiWithResponse(t.Context())
		server.Close()
		got := "failed"
		if err == nil {
			name, detail := "-", "-"
			if answer.JSON200 != nil {
				name = answer.JSON200.Name
			}
			if answer.Problem != nil {
				detail = answer.Problem.Detail
			}
			if got = name + " " + detail; answer.StatusCode() != c.status || string(answer.Body) != c.body {
				t.Errorf("%d %s is read as %s %s", c.status, c.body, answer.Status(), answer.Body)
			}
		}
		if got != c.want {
			t.Errorf("%d %s %s: %s, want %s", c.status, c.mediaType, c.body, got, c.want)
		}
	}
}

func TestCallThatFailedIsNoAnswer(t *testing.T) {
	failure := errors.New("no route")
	if answer, err := apiclient.Parse[apiclient.Caller](nil, failure); answer != nil || !errors.Is(err, failure) {
		t.Errorf("%v, %v", answer, err)
	}
}
