package doccheck

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const root = "../../.."

// documents returns the texts of all Markdown files, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	tree, found := os.DirFS(root), map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "dist", "node_modules"}, base)) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		found[name] = string(text)
		return err
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("found %d documents: %v", len(found), err)
	}
	return found
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```([a-z]*).*?^ *```$")
	span    = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`([^\[\]]*)\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	outside = regexp.MustCompile(`^(https?|mailto):`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	caption = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the link targets within a document.
func anchors(text string) (found []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := dropped.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(m[1], "$1")), "")
		found = append(found, strings.ReplaceAll(title, " ", "-"))
	}
	return found
}

// deadLinks returns the broken links of one document. exists reports whether a file exists.
func deadLinks(name string, texts map[string]string, exists func(string) bool) (dead []string) {
	plain := span.ReplaceAllStringFunc(fence.ReplaceAllString(texts[name], ""), func(s string) string { return strings.Repeat("x", len(s)) })
	for _, m := range link.FindAllStringSubmatch(plain, -1) {
		if outside.MatchString(m[2]) {
			continue
		}
		file, anchor, _ := strings.Cut(m[2], "#")
		target := name
		if file != "" {
			target = path.Join(path.Dir(name), file)
		}
		if path.Ext(m[1]) == ".md" && path.Base(m[1]) != path.Base(target) {
			dead = append(dead, name+": "+m[1]+" leads to "+target)
		}
		switch text, isDocument := texts[target]; {
		case !isDocument && !exists(target):
			dead = append(dead, name+": there is no "+target)
		case isDocument && anchor != "" && !slices.Contains(anchors(text), anchor):
			dead = append(dead, name+": "+target+" has no heading #"+anchor)
		}
	}
	return dead
}

func TestLinksLeadSomewhere(t *testing.T) {
	texts := documents(t)
	exists := func(name string) bool {
		_, err := os.Stat(path.Join(root, name))
		return err == nil
	}
	for name := range texts {
		for _, d := range deadLinks(name, texts, exists) {
			t.Error(d)
		}
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	texts := map[string]string{
		"a.md": "# One `two`: three\n[x](b.md#one-two) [c.md](b.md) [x](b.md#gone) [x](c.md) [x](#one-two-three) [x](https://example.com) `[x](no)`\n```sh\n[x](no)\n# no heading\n```\n[x](#no-heading)",
		"b.md": "## One two",
	}
	want := []string{"a.md: c.md leads to b.md", "a.md: b.md has no heading #gone", "a.md: there is no c.md", "a.md: a.md has no heading #no-heading"}
	if diff := cmp.Diff(want, deadLinks("a.md", texts, func(string) bool { return false })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryPageIsInTheNavigation covers docs/ itself: the pages of docs/adr and docs/runbook are listed by
// the site.
func TestEveryPageIsInTheNavigation(t *testing.T) {
	const sidebar = "site/.vitepress/sidebar.ts"
	entries, err := os.ReadFile(path.Join(root, sidebar))
	if err != nil {
		t.Fatal(err)
	}
	for name := range documents(t) {
		if path.Dir(name) == "docs" && !strings.Contains(string(entries), `"`+path.Base(name)+`"`) {
			t.Errorf("%s has no entry in %s", name, sidebar)
		}
	}
}

// badTabs returns groups of tabs that the documentation site cannot build, or that do not read well elsewhere.
// CONTRIBUTING.md describes the convention.
func badTabs(text string) (found []string) {
	installations := []string{"Package", "Docker Compose", "Kubernetes"}
	parts := strings.Split(fence.ReplaceAllString(text, ""), "\n<!-- tabs -->\n")
	if strings.Contains(parts[0], "\n<!-- /tabs -->") {
		found = append(found, "tabs end that did not begin")
	}
	for _, part := range parts[1:] {
		group, rest, ended := strings.Cut(part, "\n<!-- /tabs -->\n")
		if !ended || strings.Contains(rest, "\n<!-- /tabs -->\n") {
			found = append(found, "tabs without an end, or with two")
			continue
		}
		var captions []string
		for _, m := range caption.FindAllStringSubmatch(group, -1) {
			captions = append(captions, m[1])
		}
		known := slices.DeleteFunc(slices.Clone(captions), func(c string) bool { return !slices.Contains(installations, c) })
		switch {
		case !caption.MatchString(strings.SplitN(strings.TrimLeft(group, "\n"), "\n", 2)[0]):
			found = append(found, "tabs begin with a caption: a line that is only bold text")
		case len(captions) < 2:
			found = append(found, "tabs need two captions")
		case len(known) > 0 && (len(known) < len(captions) || !slices.IsSortedFunc(known, func(a, b string) int {
			return slices.Index(installations, a) - slices.Index(installations, b)
		})):
			found = append(found, fmt.Sprintf("tabs for installations are %q, in this order, not %q", installations, captions))
		}
	}
	return found
}

func TestTabsCanBeBuilt(t *testing.T) {
	for name, text := range documents(t) {
		for _, b := range badTabs(text) {
			t.Errorf("%s: %s", name, b)
		}
	}
}

func TestBadTabsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"\n<!-- tabs -->\n\n**Package**\n\na\n\n**Kubernetes**\n\nb\n\n<!-- /tabs -->\n": "",
		"\n<!-- tabs -->\n\n**A**\n\na\n\n**B**\n\nb\n\n<!-- /tabs -->\n":                "",
		"\n<!-- tabs -->\n\n**A**\n\na\n\n**B**\n":                                       "without an end",
		"\n<!-- /tabs -->\n": "did not begin",
		"\n<!-- tabs -->\n\na\n\n**A**\n\na\n\n**B**\n\n<!-- /tabs -->\n":                "begin with a caption",
		"\n<!-- tabs -->\n\n**A**\n\na\n\n<!-- /tabs -->\n":                              "need two",
		"\n<!-- tabs -->\n\n**Kubernetes**\n\na\n\n**Package**\n\nb\n\n<!-- /tabs -->\n": "in this order",
		"\n<!-- tabs -->\n\n**Package**\n\na\n\n**Compose**\n\nb\n\n<!-- /tabs -->\n":    "in this order",
	} {
		if got := strings.Join(badTabs(text), "\n"); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// commands returns the commands of docs/cli.md, each with its description.
func commands(reference string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(reference, "\n## fairlead ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		found[name] = text
	}
	return found
}

var (
	call   = regexp.MustCompile("(?:^|[\\s`(;|&\"'])fairlead((?: [a-z][a-z-]*)+)([^|;&`#]*)")
	flag   = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
	global = []string{"--api-key", "--config", "--output", "--server", "--help"}
)

// ours returns the part of a line that may call our CLI. Elsewhere, fairlead is the name of a release, a
// namespace, a user or a file.
func ours(line string) string {
	switch {
	case strings.Contains(line, "kubectl "):
		_, line, _ = strings.Cut(line, " -- ")
	case strings.Contains(line, "docker compose "):
		_, line, _ = strings.Cut(line, " exec ")
	case strings.Contains(line, "helm "), strings.Contains(line, "install "):
		return ""
	}
	return line
}

// unknownCalls returns the commands and flags in code blocks and code spans that do not exist.
func unknownCalls(text string, known map[string]string) (unknown []string) {
	code := strings.Join(fence.FindAllString(text, -1), "\n") + "\n" + strings.Join(span.FindAllString(fence.ReplaceAllString(text, ""), -1), "\n")
	for _, line := range strings.Split(strings.ReplaceAll(code, "\\\n", " "), "\n") {
		for _, m := range call.FindAllStringSubmatch(ours(line), -1) {
			words := strings.Fields(strings.TrimPrefix(m[1], " fairlead"))
			name := ""
			for i := range words {
				if _, ok := known[strings.Join(words[:i+1], " ")]; ok {
					name = strings.Join(words[:i+1], " ")
				}
			}
			group := slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool { return strings.HasPrefix(k, name+" ") })
			if len(words) > 0 && (name == "" || group && name != strings.Join(words, " ")) {
				unknown = append(unknown, "fairlead "+strings.Join(words, " "))
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(known[name], f[1]) && !slices.Contains(global, f[1]) {
					unknown = append(unknown, "fairlead "+name+" "+f[1])
				}
			}
		}
	}
	return unknown
}

func TestCommandsInDocumentsExist(t *testing.T) {
	texts := documents(t)
	known := commands(texts["docs/cli.md"])
	if len(known) < 50 {
		t.Fatalf("found only %d commands", len(known))
	}
	for name, text := range texts {
		for _, u := range unknownCalls(text, known) {
			t.Errorf("%s: there is no %s", name, u)
		}
	}
}

func TestUnknownCommandsAreFound(t *testing.T) {
	known := map[string]string{"nodes": "", "nodes list": "--user", "health": ""}
	text := "`fairlead nodes list --user a`, `fairlead nodes lost`, `docker compose exec -T fairlead fairlead health --fast`, `kubectl -n fairlead get x`\n```sh\nfairlead nods\n```\n"
	want := []string{"fairlead nods", "fairlead nodes lost", "fairlead health --fast"}
	if diff := cmp.Diff(want, unknownCalls(text, known)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMakeTargetsInDocumentsExist(t *testing.T) {
	makefile, err := os.ReadFile(path.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile("(?m)(?:^|[`;&] *)make ([a-z][a-z0-9-]*)")
	for name, text := range documents(t) {
		code := strings.Join(append(fence.FindAllString(text, -1), span.FindAllString(text, -1)...), "\n")
		for _, m := range target.FindAllStringSubmatch(code, -1) {
			if !regexp.MustCompile(`(?m)^([a-z0-9-]+ )*` + m[1] + `( [a-z0-9-]+)*:`).Match(makefile) {
				t.Errorf("%s: there is no make %s", name, m[1])
			}
		}
	}
}

// errorTexts holds the messages that people see for each row of the specification's table of errors.
var errorTexts = map[string][]string{
	"error-console-slash":       {"404 at `/admin`", "at the root"},
	"error-console-favicon":     {"`/admin/favicon.ico`", "`No route matches URL`"},
	"error-bad-gateway":         {"502 Bad Gateway"},
	"error-key-missing":         {"`Unauthorized: bearer token missing`"},
	"error-key-wrong":           {"`Authentication failed: invalid API key`"},
	"error-registration":        {"`Node registration rejected: Authentication failed: invalid key"},
	"error-database-refused":    {"failed to connect to database", "connection refused"},
	"error-database-clients":    {"too many clients already"},
	"error-database-pool":       {"database connection pool exhausted"},
	"error-configuration":       {"failed to parse configuration", "yaml: unmarshal errors"},
	"error-data-directory":      {"failed to open database file: permission denied"},
	"error-address-in-use":      {"address already in use"},
	"error-certificate":         {"`cannot load certificate` | `tls_cert_path`"},
	"error-certificate-proxy":   {"`cannot load certificate` in the proxy's log", "unable to get local issuer certificate"},
	"error-no-such-host":        {"no such host"},
	"error-relay-unreachable":   {"failed to connect to DERP server", "no DERP home"},
	"error-disk-full":           {"no space left on device", "database write failed"},
	"error-corruption-sqlite":   {"database disk image is malformed"},
	"error-corruption-postgres": {"invalid page header"},
	"error-console-login":       {"blank page", "connection error"},
	"error-script":              {"`[ERROR]` from `scripts/proxy.sh`"},
}

func TestEveryErrorIsAnswered(t *testing.T) {
	list, err := os.ReadFile(path.Join(root, "internal/test/speccheck/rows.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []struct {
		Section string
		Rows    []struct{ ID string }
	}
	if err := yaml.Unmarshal(list, &sections); err != nil {
		t.Fatal(err)
	}
	var specified, answered []string
	for _, s := range sections {
		for _, r := range s.Rows {
			if s.Section == "Errors" {
				specified = append(specified, r.ID)
			}
		}
	}
	page := documents(t)["docs/troubleshooting.md"]
	for id, texts := range errorTexts {
		answered = append(answered, id)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s: docs/troubleshooting.md does not say %q", id, text)
			}
		}
	}
	slices.Sort(specified)
	slices.Sort(answered)
	if diff := cmp.Diff(specified, answered); diff != "" {
		t.Errorf("specified and answered (-want +got):\n%s", diff)
	}
}

// namedTest matches the name of a test in a document: package and function.
var namedTest = regexp.MustCompile("`([a-z0-9/-]+) (Test[A-Za-z0-9]+)`")

// TestDocumentsNameTestsThatExist checks the documents that support their statements with tests. The numbers are
// how many tests each must name at least.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	texts := documents(t)
	for name, least := range map[string]int{"docs/security-findings.md": 50, "docs/comparison.md": 15, "README.md": 5} {
		found := namedTest.FindAllStringSubmatch(texts[name], -1)
		if len(found) < least {
			t.Errorf("%s: only %d tests were found", name, len(found))
		}
		for _, m := range found {
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("%s: %s has no %s", name, m[1], m[2])
			}
		}
		if names := strings.Count(texts[name], " Test"); names != len(found) {
			t.Errorf("%s: %d tests are named, %d of them as a package and a function", name, names, len(found))
		}
	}
}

// hasTest reports whether a package has a test function.
func hasTest(t *testing.T, pkg, function string) bool {
	t.Helper()
	files, err := fs.Glob(os.DirFS(root), pkg+"/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		code, err := os.ReadFile(path.Join(root, file))
		return err == nil && strings.Contains(string(code), "\nfunc "+function+"(")
	})
}
