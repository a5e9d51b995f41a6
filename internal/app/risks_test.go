package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestRisksAreLoggedOnceAndEndWhenTheyAreCorrected(t *testing.T) {
	log := &waittest.Transcript{}
	var found []string
	var failure error
	r := &risks{log: slog.New(slog.NewTextHandler(log, nil)), read: func(context.Context) ([]string, error) { return found, failure }}
	for i, step := range []struct {
		found   []string
		failure error
		want    string
	}{
		{nil, nil, ""},
		{[]string{"fsync is off"}, nil, "fsync is off"},
		{[]string{"fsync is off"}, nil, "fsync is off"},
		{nil, errors.New("connection refused"), "fsync is off"},
		{nil, nil, ""},
	} {
		found, failure = step.found, step.failure
		r.look(t.Context())
		if got := strings.Join(r.warnings(), ", "); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if n := strings.Count(log.String(), "unsafe PostgreSQL setting"); n != 1 {
		t.Errorf("logged %d times: %s", n, log)
	}
}
