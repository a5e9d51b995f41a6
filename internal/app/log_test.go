package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

func TestEachLevelShowsItselfAndWorse(t *testing.T) {
	levels := []slog.Level{config.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	names := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR"}
	for i, level := range levels {
		var text, lines bytes.Buffer
		for w, format := range map[*bytes.Buffer]string{&text: "text", &lines: "json"} {
			log := newLogger(w, config.Log{Level: level, Format: format})
			for _, l := range levels {
				log.Log(t.Context(), l, "route enabled", "level", slog.LevelInfo)
			}
		}
		var fromText, fromJSON []string
		for line := range strings.Lines(text.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			fromText = append(fromText, strings.Fields(rest)[0])
			if !strings.Contains(line, ` msg="route enabled" `) {
				t.Errorf("text: %s", line)
			}
		}
		for line := range strings.Lines(lines.String()) {
			var record struct{ Level, Msg string }
			line, _, _ = strings.Cut(line, `,"level":"INFO"}`) // cut off the attribute named level
			if err := json.Unmarshal([]byte(line+"}"), &record); err != nil || record.Msg != "route enabled" {
				t.Errorf("json: %s (%v)", line, err)
			}
			fromJSON = append(fromJSON, record.Level)
		}
		for form, got := range map[string][]string{"text": fromText, "json": fromJSON} {
			if diff := cmp.Diff(names[i:], got); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s", form, names[i], diff)
			}
		}
	}
}
