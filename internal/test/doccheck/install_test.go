package doccheck

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// A step is one command, or one thing to do by hand.
func TestInstallationTakesFewSteps(t *testing.T) {
	const document = "../../../docs/install.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	commands := func(heading string) []string {
		t.Helper()
		found, err := Commands(document, heading)
		if err != nil || len(found) == 0 {
			t.Fatalf("the commands of %q are %q, %v", heading, found, err)
		}
		for _, command := range found {
			if strings.Contains(command, "&&") || strings.Contains(command, ";") {
				t.Errorf("%s: %s is more than one step", heading, command)
			}
		}
		return found
	}
	device := commands("Join two devices") // install, join, ping
	if len(device) != 3 {
		t.Fatalf("to join devices, run %q", device)
	}
	for _, way := range []struct {
		heading         string
		byHand, atMost  int
		clientInstalled bool // beforehand
	}{
		{heading: "Docker Compose", atMost: 7},
		{heading: "Package", atMost: 9},
		{heading: "Binary", atMost: 5, clientInstalled: true},
		{heading: "Kubernetes", byHand: 1, atMost: 13}, // edits values
	} {
		steps := len(commands(way.heading)) + way.byHand + 2*len(device[:2]) + len(device[2:])
		if way.clientInstalled {
			steps -= 2
		}
		if steps > way.atMost {
			t.Errorf("%s takes %d steps", way.heading, steps)
		}
		anchor := strings.ReplaceAll(strings.ToLower(way.heading), " ", "-")
		row, _, _ := strings.Cut(string(text)[strings.Index(string(text), "| ["+way.heading+"](#"+anchor+")"):], "\n")
		if cells := strings.Split(row, "|"); strings.TrimSpace(cells[3]) != fmt.Sprint(steps) {
			t.Errorf("%s takes %d steps; the table says %s", way.heading, steps, row)
		}
	}
}
