package api_test

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/api"
)

func docsPage(t *testing.T, document string) string {
	t.Helper()
	page, err := api.RenderDocs([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// all returns the first group of every match.
func all(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestPageShowsTheWholeDocument(t *testing.T) {
	page := docsPage(t, string(apispec.Document))
	doc, least := readDocument(t), leastRoles()
	for name, op := range doc.operations() {
		method, path, _ := strings.Cut(name, " ")
		id := op["operationId"].(string)
		_, section, ok := strings.Cut(page, `<section class="op" id="`+id+`">`)
		if !ok {
			t.Errorf("%s has no section", name)
			continue
		}
		section, _, _ = strings.Cut(section, "</section>")
		for _, want := range []string{">" + method + "</span> " + path + "<", html.EscapeString(op["summary"].(string))} {
			if !strings.Contains(section, want) {
				t.Errorf("%s does not show %q", name, want)
			}
		}
		if role := least[name]; strings.Contains(section, "For keys with the role "+role) != (role != "") {
			t.Errorf("%s does not show that it is for the role %q", name, role)
		}
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if want := "<code>" + doc.follow(p)["name"].(string) + "</code>"; !strings.Contains(section, want) {
				t.Errorf("%s does not show the parameter %s", name, want)
			}
		}
		for status := range op["responses"].(object) {
			if status != "200" && !strings.Contains(section, "<code>"+status+"</code>") {
				t.Errorf("%s does not show the status %s", name, status)
			}
		}
	}
	for name, s := range doc.root["components"].(object)["schemas"].(object) {
		members, _ := s.(object)["properties"].(object)
		for member := range members {
			if !strings.Contains(page, "<tr><td><code>"+member+"</code>") {
				t.Errorf("%s.%s is nowhere", name, member)
			}
		}
	}
	for _, text := range []string{"Authentication failed: invalid API key", "Reading your own write", "<h1>Fairlead API v1</h1>"} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is nowhere", text)
		}
	}
	for _, leftover := range []string{"{{", "<no value>", "`", "%!", "$ref", "#/components"} {
		if strings.Contains(page, leftover) {
			t.Errorf("the page holds %q", leftover)
		}
	}
}

func TestPageLeadsNowhereElse(t *testing.T) {
	page := docsPage(t, string(apispec.Document))
	ids := map[string]bool{}
	for _, id := range all(`\sid="([^"]*)"`, page) {
		if ids[id] {
			t.Errorf("the id %q is there twice", id)
		}
		ids[id] = true
	}
	for _, link := range all(`href="([^"]*)"`, page) {
		if target, ok := strings.CutPrefix(link, "#"); link != "openapi.yaml" && (!ok || !ids[target]) {
			t.Errorf("the link %q leads nowhere", link)
		}
	}
	// What the policy of the page would refuse.
	for _, pattern := range []string{`(?i)(<script)`, `(?i)(<link)`, `(?i)(<img)`, `(?i)(<iframe)`, `(?i)(\ssrc=)`, `(?i)(@import)`, `(?i)(url\()`, `(?i)\s(on\w+=)`, `(?i)\s(style=)`, `(?i)(javascript:)`} {
		if found := all(pattern, page); found != nil {
			t.Errorf("the page holds %q", found)
		}
	}
}

func TestExamplesOnThePageAreJSON(t *testing.T) {
	examples := all(`(?s)<pre>(.*?)</pre>`, docsPage(t, string(apispec.Document)))
	for _, example := range examples {
		if text := html.UnescapeString(example); !json.Valid([]byte(text)) {
			t.Errorf("not JSON: %s", text)
		}
	}
	if len(examples) < 20 {
		t.Errorf("only %d examples", len(examples))
	}
}

func TestPageIsServedToEverybodyUnderItsPolicy(t *testing.T) {
	s := sqlite(t)
	a := s.call("GET", "/api/v1/docs", nil, noKey)
	if a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || string(a.body) != docsPage(t, string(apispec.Document)) {
		t.Errorf("status %d, %s, %d bytes", a.status, a.header.Get("Content-Type"), len(a.body))
	}
	if policy := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'unsafe-inline'; ") {
		t.Errorf("policy %q", policy)
	}
	if a := s.call("GET", "/api/v1/openapi.yaml", nil, noKey); string(a.body) != string(apispec.Document) {
		t.Error("another document is served")
	}
}

func TestPageTakesTextAsText(t *testing.T) {
	page := docsPage(t, `
info: {title: "<b>T</b>", version: v1, description: "## <i>H</i>\n\n<script>a</script> and `+"`<u>`"+`\n\n- <b>x</b>\n- [y](#/components/schemas/S)\n\n| a | b |\n|---|---|\n| <s> | c |"}
tags: [{name: "<t>", description: "<d>"}]
paths:
  /x:
    get:
      operationId: x
      tags: ["<t>"]
      summary: "<s>"
      responses: {"200": {description: "<r>", content: {application/json: {schema: {$ref: "#/components/schemas/S"}}}}}
components:
  schemas:
    S: {type: object, properties: {m: {type: string, description: "<e>", enum: ["<f>"], example: "</pre><script>"}}}
`)
	if found := all(`(<(?:b|i|u|s|t|d|r|e|f|script)>)`, page); found != nil {
		t.Errorf("not escaped: %q", found)
	}
	for _, want := range []string{
		`<h2 id="i-H--i">&lt;i&gt;H&lt;/i&gt;</h2>`, `<code>&lt;u&gt;</code>`, `<li>&lt;b&gt;x&lt;/b&gt;</li><li><a href="#S">y</a></li>`, `<tr><th>a</th><th>b</th></tr><tr><td>&lt;s&gt;</td><td>c</td></tr>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if _, err := api.RenderDocs([]byte("paths: [")); err == nil {
		t.Error("a document that cannot be read is taken")
	}
}
