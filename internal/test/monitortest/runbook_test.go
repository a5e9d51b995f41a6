package monitortest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachAlertHasItsPageOfTheRunbookAndEachPageItsAlert(t *testing.T) {
	var named, written []string
	for _, a := range alerts(t) {
		named = append(named, a.Alert)
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity is %q", a.Alert, s)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: no summary or no description", a.Alert)
		}
		if want := runbookURL + a.Alert + ".md"; a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	for _, name := range files(t, runbook+"/*.md") {
		alert := strings.TrimSuffix(filepath.Base(name), ".md")
		if alert == "README" {
			continue
		}
		written = append(written, alert)
		text := strings.Replace(read(t, name), "<!-- tabs -->\n\n**Package**\n\n", "", 1) // commands that depend on the installation
		for _, part := range []string{"# " + alert + "\n", "\n## Impact\n", "\n## Diagnose\n\n```sh\n", "\n## Fix\n\n- "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", name, part)
			}
		}
	}
	slices.Sort(named)
	slices.Sort(written)
	if diff := cmp.Diff(named, written); diff != "" {
		t.Errorf("alerts and pages (-alerts +pages):\n%s", diff)
	}
}

var (
	// command matches a command at the start of a line in a code block, or in backquotes.
	command = regexp.MustCompile("(?m)(?:^|`)(fairlead(?: [a-z-]+)+)")
	link    = regexp.MustCompile(`\]\(([^):]+)\)`)
	noSlug  = regexp.MustCompile(`[^a-z0-9 -]`)
)

// A runbook that names a missing command or page costs time during an incident.
func TestRunbookNamesOnlyCommandsAndPagesThatExist(t *testing.T) {
	manual := read(t, "../../../docs/cli.md")
	found := 0
	for _, name := range append(files(t, runbook+"/*.md"), "../../../docs/monitoring.md") {
		text := read(t, name)
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			found++
			words, _, _ := strings.Cut(m[1], " -") // without flags
			if !strings.Contains(manual, "| [`"+words+"`]") {
				t.Errorf("%s: there is no command %q", name, words)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			path = filepath.Join(filepath.Dir(name), path)
			if anchor != "" && !slices.Contains(anchors(read(t, path)), anchor) {
				t.Errorf("%s: %s has no %q", name, path, anchor)
			}
			files(t, path)
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}

// anchors returns the anchors of a document's headings.
func anchors(text string) (found []string) {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			found = append(found, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	}
	return found
}
