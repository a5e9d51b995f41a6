package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// screenOf makes stdout a terminal.
func screenOf(width, height int) func(*Env) {
	return func(env *Env) { env.Size = func() (int, int) { return width, height } }
}

func TestListsFitTheTerminal(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	noColour := func(env *Env) { env.Environ = append(env.Environ, "NO_COLOR=1") }
	lists := []string{"version", "whoami", "debug digest"}
	eachCommand(New(Env{}), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("watch") != nil {
			line := strings.TrimPrefix(cmd.CommandPath(), "fairlead ")
			if strings.Contains(cmd.Use, " <") { // the command takes the ID of an object
				line += " 1"
			}
			lists = append(lists, line)
		}
	})
	for _, list := range lists {
		for _, width := range []int{20, 40, 60, 80, 100, 200} {
			r := fairlead(t, socket, strings.Fields(list), screenOf(width, 24), noColour)
			if r.status != 0 || r.stdout.Len() == 0 {
				t.Errorf("%s: status %d, %s", list, r.status, &r.stderr)
			}
			for line := range strings.Lines(r.stdout.String()) {
				if got := displayWidth(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s at %d columns has a line of %d: %s", list, width, got, line)
				}
			}
		}
	}
}

func TestTheLeastImportantColumnsGoFirst(t *testing.T) {
	items := [][]string{{"1", "alices-laptop-of-last-year", "alice", "tag:server"}, {"2", "web-1", "bob", "tag:web"}}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "ID  NAME                        USER   TAGS\n1   alices-laptop-of-last-year  alice  tag:server\n2   web-1                       bob    tag:web\n"},
		{47, "ID  NAME                        USER   TAGS\n1   alices-laptop-of-last-year  alice  tag:ser…\n2   web-1                       bob    tag:web\n"},
		{40, "ID  NAME                        USER\n1   alices-laptop-of-last-year  alice\n2   web-1                       bob\n"},
		{24, "ID  NAME           USER\n1   alices-lapto…  alice\n2   web-1          bob\n"},
		{12, "ID  NAME\n1   alices-…\n2   web-1\n"},
		{3, "ID\n1\n2\n"},
	} {
		g := gridOf("ID, NAME, USER, TAGS", items, func(row []string) []string { return append([]string{}, row...) })
		g.fit([]string{"TAGS"}, c.width)
		if diff := cmp.Diff(c.want, g.text(false)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", c.width, diff)
		}
	}
}

func TestTimesAreShownWholeOrNotAtAll(t *testing.T) {
	items := [][]string{{"1", "alices-laptop-of-last-year", "2026-11-15T12:55:00Z", "-"}, {"2", "web-1", "-", "2026-11-15T12:55:00Z"}}
	for _, c := range []struct {
		width int
		want  string
		left  []string
	}{
		{60, "ID  NAME          SEEN                  CREATED\n1   alices-lapt…  2026-11-15T12:55:00Z  -\n2   web-1         -                     2026-11-15T12:55:00Z\n", nil},
		{44, "ID  NAME                SEEN\n1   alices-laptop-of-…  2026-11-15T12:55:00Z\n2   web-1               -\n", []string{"CREATED"}},
		{30, "ID  NAME\n1   alices-laptop-of-last-year\n2   web-1\n", []string{"CREATED", "SEEN"}},
	} {
		g := gridOf("ID, NAME, SEEN, CREATED", items, func(row []string) []string { return append([]string{}, row...) })
		left := g.fit(nil, c.width)
		if diff := cmp.Diff(c.want, g.text(false)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", c.width, diff)
		}
		if diff := cmp.Diff(c.left, left); diff != "" {
			t.Errorf("%d columns, left out (-want +got):\n%s", c.width, diff)
		}
	}
}

func TestOldestPartsGoFirst(t *testing.T) {
	if got := cutBeginning("▁▂▃▄▅▆▇█", 4); got != "…▆▇█" {
		t.Errorf("cut to 4 cells: %q", got)
	}
	var out, notes strings.Builder
	env := Env{Stdout: &out, Stderr: &notes, Environ: []string{"NO_COLOR=1"}}
	screenOf(14, 24)(&env)
	list := columns{names: "ID, PARTS", aged: "PARTS"}
	err := showList(&tool{Env: env, format: formatTable}, list, []string{"····▁▁▁▁████"}, func(parts string) []string { return []string{"1", parts} })
	if want := "ID  PARTS\n1   …·▁▁▁▁████\n"; err != nil || out.String() != want {
		t.Errorf("got %q (%v), want %q", &out, err, want)
	}
	if want := "The terminal is too narrow; the oldest part of PARTS is cut off\n"; notes.String() != want {
		t.Errorf("noted %q, want %q", &notes, want)
	}
}

func TestColumnsStayStraightWhateverTheScript(t *testing.T) {
	items := []string{"alice", "愛", "e\u0301va", "🙂🙂"}
	got := table("NAME, X", items, func(name string) []string { return []string{name, "|"} })
	want := "NAME   X\nalice  |\n愛     |\ne\u0301va    |\n🙂🙂   |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := cut("愛愛愛", 4); got != "愛…" {
		t.Errorf("cut to 4 cells: %q", got)
	}
}

func TestColourOnlyOnATerminalThatWantsIt(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	with := func(entry string) func(*Env) { return func(env *Env) { env.Environ = append(env.Environ, entry) } }
	for name, c := range map[string]struct {
		env  []func(*Env)
		want bool
	}{
		"terminal":      {[]func(*Env){screenOf(80, 24)}, true},
		"pipe":          {nil, false},
		"NO_COLOR":      {[]func(*Env){screenOf(80, 24), with("NO_COLOR=1")}, false},
		"dumb terminal": {[]func(*Env){screenOf(80, 24), with("TERM=dumb")}, false},
	} {
		r := fairlead(t, socket, []string{"nodes", "list"}, c.env...)
		if got := strings.Contains(r.stdout.String(), "\x1b[32monline\x1b[0m"); got != c.want {
			t.Errorf("%s: %q", name, &r.stdout)
		}
	}
}

func TestWideShowsAllColumnsWhateverTheTerminal(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"nodes", "list", "-o", "wide"}, screenOf(40, 24))
	for _, want := range []string{"TAGS", "IPV6", "fd7a:115c:a1e0::1", "linux amd64", "1.92.3"} {
		if !strings.Contains(r.stdout.String(), want) {
			t.Errorf("no %s in\n%s", want, &r.stdout)
		}
	}
	r = fairlead(t, socket, []string{"nodes", "list"}, screenOf(40, 24))
	if got := r.stderr.String(); !strings.Contains(got, "too narrow. Hidden columns, shown with --output wide: TAGS, LAST SEEN, USER, IPV6, SYSTEM, CLIENT, EXPIRY\n") {
		t.Errorf("stderr %q", got)
	}
}
