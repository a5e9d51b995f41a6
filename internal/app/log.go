package app

import (
	"io"
	"log/slog"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.Level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if level, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey && level == config.LevelTrace {
			a.Value = slog.StringValue("TRACE")
		}
		return a
	}}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// publicText returns the part of an error that anyone may see: what happened, without addresses and names.
func publicText(err error) string {
	text := err.Error()
	for _, phrase := range []string{
		"no space left on device", "invalid page header", "database disk image is malformed", "too many clients already",
		"database connection pool exhausted", "connection refused", "permission denied", "database is locked", "database too slow",
	} {
		if strings.Contains(text, phrase) {
			return phrase
		}
	}
	return "database unavailable; see the server log"
}
