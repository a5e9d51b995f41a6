package explain_test

import (
	"flag"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
	"github.com/fairlead-mesh/fairlead/internal/policy/policytest"
)

var update = flag.Bool("update", false, "rewrite what the files of testdata expect")

const (
	nodesMark   = "-- nodes --\n"
	answersMark = "-- answers --\n"
)

// The first line of each file is the rule that it proves. Then come a policy, the nodes,
// and questions with their answers.
func TestAccessIsWhatItsCorpusSays(t *testing.T) {
	policytest.Corpus(t, "access", *update, after(answersMark), func(t *testing.T, given, want string) string {
		text, nodes, ok := strings.Cut(strings.TrimSuffix(given, answersMark), nodesMark)
		if !ok {
			t.Fatal("the file lacks its nodes")
		}
		return answers(t, worldFor(t, text, nodes), want)
	})
}

// after returns a function that splits a file after a mark.
func after(mark string) func(file string) (given, want string) {
	return func(file string) (given, want string) {
		given, want, _ = strings.Cut(file, mark)
		return given + mark, want
	}
}

// worldFor parses a policy, if there is one, and creates a node from each line: its name,
// then its owner with groups at the identity provider, or tags, routes, and words. The first node has 100.64.0.1 and
// fd7a:115c:a1e0::1.
func worldFor(t testing.TB, text, nodes string) *policy.World {
	t.Helper()
	var doc *lang.Doc
	if strings.Contains(text, "{") {
		var problems lang.Problems
		if doc, problems = lang.Parse([]byte(text)); len(problems) > 0 {
			t.Fatal(problems)
		}
	}
	return policy.WorldOf(meshFor(t, nodes), doc)
}

func meshFor(t testing.TB, nodes string) *mesh.Snapshot {
	t.Helper()
	var evs []mesh.Event
	users, groups, roles := map[string]mesh.UserID{}, map[string][]string{}, map[string]mesh.Role{}
	for line := range strings.Lines(nodes) {
		for _, word := range strings.Fields(line) {
			if name, ok := strings.CutPrefix(word, "group:"); ok {
				owner := strings.Fields(line)[1]
				groups[owner] = append(groups[owner], name)
			}
			if name, ok := strings.CutPrefix(word, "role:"); ok {
				roles[strings.Fields(line)[1]] = mesh.Role(name)
			}
		}
	}
	id := mesh.NodeID(0)
	for line := range strings.Lines(nodes) {
		words := strings.Fields(line)
		id++
		n := meshgen.Node(id, 0)
		n.Name = words[0]
		for _, word := range words[1:] {
			switch prefix, err := netip.ParsePrefix(word); {
			case err == nil:
				n.RoutableIPs, n.Routes = append(n.RoutableIPs, prefix), append(n.Routes, prefix)
			case strings.HasPrefix(word, "tag:"):
				n.Tags = append(n.Tags, word)
			case strings.HasPrefix(word, "group:") || strings.HasPrefix(word, "role:"): // of the user
			case word == "expired":
				n.KeyExpired = true
			case word == "unapproved":
				n.Routes = nil
			case word == "online":
				n.Presence.Online = true
			case word == "ipv4":
				n.IPv6 = netip.Addr{}
			case word == "ipv6":
				n.IPv4 = netip.Addr{}
			default:
				if users[word] == 0 {
					users[word] = mesh.UserID(len(users) + 1)
					evs = append(evs, mesh.UserPut{User: &mesh.User{ID: users[word], Name: word, Email: word + "@example.com", Groups: groups[word], Role: roles[word]}})
				}
				n.Owner = users[word]
			}
		}
		evs = append(evs, mesh.NodePut{Node: n})
		if n.Presence.Online {
			evs = append(evs, mesh.Online{ID: id, Replica: "a", Conn: 1, At: meshgen.Start})
		}
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

// answers evaluates each question: source, destination and service. Lines that begin with a
// tab are the expected answers.
func answers(t testing.TB, w *policy.World, questions string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(questions) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		b.WriteString(line)
		words := strings.Fields(line)
		if len(words) == 1 && words[0] == "tests" {
			failures := explain.RunTests(w)
			for _, f := range failures {
				fmt.Fprintf(&b, "\t%s\n", f.Text)
			}
			if len(failures) == 0 {
				b.WriteString("\tall hold\n")
			}
			continue
		}
		q, err := question(w, words)
		if err != nil {
			fmt.Fprintf(&b, "\t%v\n", err)
			continue
		}
		b.WriteString(answerText(w, explain.Why(w, q)))
	}
	return b.String()
}

func question(w *policy.World, words []string) (q explain.Question, err error) {
	if len(words) < 2 {
		return q, fmt.Errorf("a question is who, whom, and maybe a port or a protocol")
	}
	if q.From, err = explain.ParseEnd(w, words[0]); err != nil {
		return q, err
	}
	if q.To, err = explain.ParseEnd(w, words[1]); err != nil {
		return q, err
	}
	for _, word := range words[2:] {
		if number, ok := strings.CutPrefix(word, "protocol:"); ok {
			q.Protocol, err = strconv.Atoi(number)
		} else {
			var port uint64
			port, err = strconv.ParseUint(word, 10, 16)
			q.Port = uint16(port)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func answerText(w *policy.World, a explain.Answer) string {
	var b strings.Builder
	verdict := "not allowed"
	if a.Allowed {
		verdict = "allowed"
	}
	for _, id := range a.At {
		n, _ := w.Nodes.Get(id)
		verdict += " at " + n.Name
	}
	fmt.Fprintf(&b, "\t%s\n", verdict)
	for _, f := range a.Rules {
		fmt.Fprintf(&b, "\tby %s\n", findingText(f))
	}
	for _, f := range a.Nearest {
		fmt.Fprintf(&b, "\tnot by %s\n", findingText(f))
	}
	for _, note := range a.Notes {
		fmt.Fprintf(&b, "\tbut %s\n", note)
	}
	return b.String()
}

func findingText(f explain.Finding) string {
	text := f.String()
	if f.Grant {
		text += " [grant]"
	}
	if f.Comment != "" {
		text += " // " + f.Comment
	}
	return text
}
