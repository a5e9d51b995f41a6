package explain_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

var (
	heading = regexp.MustCompile("^#+ (.*)")
	rowForm = regexp.MustCompile(`^\| *(.*?) *\| *(.*?) *\| *(.*?) *\|$`)
)

// docExample is a policy in docs/policy.md with the table under it.
type docExample struct {
	name   string // name of its section
	text   string
	claims [][3]string // from, to, allowed
}

// readDocumentation returns the devices of the examples, in the syntax of worldFor, and the
// examples.
func readDocumentation(t *testing.T) (devices string, list []*docExample) {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var section, table string
	inside := false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		row := rowForm.FindStringSubmatch(line)
		switch {
		case line == "```json":
			inside, list = true, append(list, &docExample{name: section})
		case line == "```":
			inside = false
		case inside:
			list[len(list)-1].text += line + "\n"
		case heading.MatchString(line):
			section = heading.FindStringSubmatch(line)[1]
		case row == nil:
			table = ""
		case table == "":
			table = row[1]
		case strings.HasPrefix(row[1], "---"):
		case table == "device":
			devices += strings.Join(row[1:], " ") + "\n"
		case table == "from":
			e := list[len(list)-1]
			e.claims = append(e.claims, [3]string(row[1:]))
		}
	}
	for _, fact := range []string{"alice is in the group `dev` of the identity provider", "bob has the role `admin`"} {
		if !strings.Contains(string(raw), fact) {
			t.Errorf("the text does not say: %s", fact)
		}
	}
	return strings.NewReplacer(" alice ", " alice group:dev ", " bob ", " bob role:admin ").Replace(devices), list
}

func TestExamplesOfTheDocumentationMeanWhatTheirTablesSay(t *testing.T) {
	devices, list := readDocumentation(t)
	if len(list) < 10 || devices == "" {
		t.Fatalf("%d examples and these devices were found: %s", len(list), devices)
	}
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			w := worldFor(t, e.text, devices)
			for _, f := range explain.RunTests(w) {
				t.Error(f.Text)
			}
			if len(e.claims) == 0 {
				t.Error("no table says what the example means")
			}
			for _, c := range e.claims {
				a := explain.Why(w, claim(t, w, c[0], c[1]))
				if want := c[2] == "yes"; a.Allowed != want || !want && c[2] != "no" {
					t.Errorf("%s to %s is said to be %q; it is:\n%s", c[0], c[1], c[2], answerText(w, a))
				}
			}
		})
	}
}

// claim parses the first two cells of a row: source and destination, with a port or a
// protocol or both.
func claim(t *testing.T, w *policy.World, from, to string) (q explain.Question) {
	t.Helper()
	to, protocol, named := strings.Cut(to, " ")
	host, port, ported := strings.Cut(to, ":")
	var err error
	if q.From, err = explain.ParseEnd(w, from); err != nil {
		t.Fatal(err)
	}
	if q.To, err = explain.ParseEnd(w, host); err != nil {
		t.Fatal(err)
	}
	if named {
		if q.Protocol, err = lang.ParseProtocol(protocol); err != nil {
			t.Fatal(err)
		}
	}
	if ported {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		q.Port = uint16(number)
	}
	return q
}
