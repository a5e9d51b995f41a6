package sitecheck

import (
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

const root = "../../.."

var site = flag.String("site", "", "directory with the built site")

// reference is something that a page links to, or loads.
type reference struct {
	url   string
	loads bool
}

// page is what a page contains and refers to. Wrong are headings whose anchor is not the one on GitHub.
type page struct {
	ids, wrong []string
	references []reference
	policy     string
}

var (
	heading = regexp.MustCompile(`^h[1-6]$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	counted = regexp.MustCompile(`-\d+$`) // of headings with the same text
	inStyle = regexp.MustCompile(`url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)`)
	// policyNames are directives that must be in a page's content policy, so that the browser itself refuses other hosts.
	policyNames = []string{"default-src 'none'", "connect-src 'self'", "font-src 'self'"}
)

// headingText returns the text of a heading, without the link to itself that the site adds.
func headingText(n *html.Node) (text string) {
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			text += c.Data
		case slices.Contains(c.Attr, html.Attribute{Key: "class", Val: "header-anchor"}):
		default:
			text += headingText(c)
		}
	}
	return strings.TrimSpace(text)
}

// slug returns the anchor that GitHub gives to a heading, as doccheck does.
func slug(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func readPage(text string) (page, error) {
	top, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return page{}, err
	}
	var p page
	for n := range top.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
		}
		if id := attributes["id"]; id != "" {
			p.ids = append(p.ids, id)
			if want := slug(headingText(n)); heading.MatchString(n.Data) && counted.ReplaceAllString(id, "") != counted.ReplaceAllString(want, "") {
				p.wrong = append(p.wrong, fmt.Sprintf("the heading %s is %s on GitHub", id, want))
			}
		}
		if strings.EqualFold(attributes["http-equiv"], "Content-Security-Policy") {
			p.policy = attributes["content"]
		}
		for _, name := range []string{"href", "src", "srcset", "poster", "data", "action"} {
			if value, ok := attributes[name]; ok {
				p.references = append(p.references, reference{value, n.Data != "a"})
			}
		}
		for _, m := range inStyle.FindAllStringSubmatch(attributes["style"], -1) {
			p.references = append(p.references, reference{m[1] + m[2], true})
		}
	}
	return p, nil
}

// problems returns the broken references of a site, and pages that load something from another host.
func problems(files fs.FS) (found []string, pages map[string]page, err error) {
	pages = map[string]page{}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" && path.Ext(name) != ".css" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".html" {
			pages[name], err = readPage(string(text))
			return err
		}
		for _, m := range inStyle.FindAllStringSubmatch(string(text), -1) {
			if problem := check(files, nil, name, reference{m[1] + m[2], true}); problem != "" {
				found = append(found, name+": "+problem)
			}
		}
		return nil
	})
	for name, p := range pages {
		for _, directive := range policyNames {
			if !strings.Contains(p.policy, directive) {
				found = append(found, fmt.Sprintf("%s: its content policy lacks %q", name, directive))
			}
		}
		if strings.Contains(p.policy, "//") || strings.Contains(p.policy, "*") {
			found = append(found, name+": its content policy allows other hosts")
		}
		for _, w := range p.wrong {
			found = append(found, name+": "+w)
		}
		for _, r := range p.references {
			if problem := check(files, pages, name, r); problem != "" {
				found = append(found, name+": "+problem)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), pages, err
}

// check returns what is wrong with a reference, or nothing.
func check(files fs.FS, pages map[string]page, from string, r reference) string {
	u, err := url.Parse(r.url)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "data":
		return ""
	case u.Scheme != "" || u.Host != "":
		if r.loads {
			return "loads " + r.url
		}
		return ""
	}
	target := from
	if u.Path != "" {
		target = strings.TrimPrefix(path.Join("/", path.Dir(from), u.Path), "/")
		if strings.HasPrefix(u.Path, "/") {
			target = strings.TrimPrefix(path.Clean(u.Path), "/")
		}
		if strings.HasSuffix(u.Path, "/") {
			target = path.Join(target, "index.html")
		}
	}
	if info, err := fs.Stat(files, target); err != nil || info.IsDir() {
		return "there is no " + r.url
	}
	if u.Fragment != "" && !r.loads && !slices.Contains(pages[target].ids, u.Fragment) {
		return "there is no heading " + r.url
	}
	return ""
}

func TestSite(t *testing.T) {
	if *site == "" {
		t.Skip("needs the built site: run make site-check")
	}
	found, pages, err := problems(os.DirFS(*site))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
	// Every document is a page. ARCHITECTURE.md is architecture.html, and a README is the index of its directory.
	documents := 0
	err = fs.WalkDir(os.DirFS(path.Join(root, "docs")), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		documents++
		if name == strings.ToUpper(strings.TrimSuffix(name, ".md"))+".md" {
			name = strings.ToLower(name)
		}
		built := strings.TrimSuffix(strings.ReplaceAll(name, "README.md", "index.md"), ".md") + ".html"
		if _, ok := pages[built]; !ok {
			t.Errorf("docs/%s is not part of the site: there is no %s", name, built)
		}
		return nil
	})
	if err != nil || documents < 50 {
		t.Errorf("found %d documents: %v", documents, err)
	}
	if _, ok := pages["index.html"]; !ok {
		t.Error("there is no home page")
	}
}

// Prove that the check can fail.
func TestProblemsAreFound(t *testing.T) {
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; connect-src 'self'; font-src 'self'">`
	files := fstest.MapFS{
		"index.html": {Data: []byte(policy + `<h1 id="top">Top</h1><a href="#top">x</a><a href="#gone">x</a><a href="/d/">x</a><a href="/d/b.html#é">x</a>
			<a href="d/c.html">x</a><a href="https://example.com">x</a><img src="https://example.com/x.png"><img src="data:,"><img style="background: url('//example.com/y')">`)},
		"d/index.html": {Data: []byte(policy + `<a href="b.html#here">x</a><a href="../index.html#top">x</a><script src="/gone.js"></script>`)},
		"d/b.html":     {Data: []byte(`<meta http-equiv="Content-Security-Policy" content="default-src 'none' https://example.com; connect-src 'self'"><p id="here"><h2 id="a-b">A: B <a class="header-anchor">#</a></h2><h3 id="a-b-1">A b</h3><h3 id="a_b">A <code>b</code></h3>`)},
		"style.css":    {Data: []byte(`a { background: url(d/b.html) } @import "https://example.com/z.css"`)},
	}
	want := []string{
		`d/b.html: its content policy allows other hosts`,
		`d/b.html: its content policy lacks "font-src 'self'"`,
		"d/b.html: the heading a_b is a-b on GitHub",
		"d/index.html: there is no /gone.js",
		"index.html: loads //example.com/y",
		"index.html: loads https://example.com/x.png",
		"index.html: there is no d/c.html",
		"index.html: there is no heading #gone",
		"index.html: there is no heading /d/b.html#é",
		"style.css: loads https://example.com/z.css",
	}
	found, _, err := problems(files)
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}
