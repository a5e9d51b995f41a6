package api_test

import (
	"strings"
	"testing"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/apidocs"
)

func TestPageIsServedToEverybodyUnderItsPolicy(t *testing.T) {
	s := sqlite(t)
	page, err := apidocs.Render(apispec.Document)
	if err != nil {
		t.Fatal(err)
	}
	a := s.call("GET", "/api/v1/docs", nil, noKey)
	if a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || string(a.body) != string(page) {
		t.Errorf("status %d, %s, %d bytes", a.status, a.header.Get("Content-Type"), len(a.body))
	}
	if policy := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'unsafe-inline'; ") {
		t.Errorf("policy %q", policy)
	}
	if a := s.call("GET", "/api/v1/openapi.yaml", nil, noKey); string(a.body) != string(apispec.Document) {
		t.Error("another document is served")
	}
}
