package apidocs_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/apidocs"
)

type object = map[string]any

type document struct {
	Paths      map[string]object
	Components struct{ Schemas, Parameters map[string]object }
}

func rendered(t *testing.T, document string) string {
	t.Helper()
	page, err := apidocs.Render([]byte(document))
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
	page := rendered(t, string(apispec.Document))
	var doc document
	if err := yaml.Unmarshal(apispec.Document, &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			if method != "parameters" {
				doc.isShown(t, page, strings.ToUpper(method), path, op.(object))
			}
		}
	}
	for name, s := range doc.Components.Schemas {
		members, _ := s["properties"].(object)
		for member := range members {
			if !strings.Contains(page, "<tr><td><code>"+member+"</code>") {
				t.Errorf("%s.%s is nowhere", name, member)
			}
		}
	}
	for _, text := range []string{"Authentication failed: invalid API key", "Read-your-writes consistency", "<h1>Fairlead API v1</h1>"} {
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

// isShown checks that a section of the page shows everything about an operation.
func (d document) isShown(t *testing.T, page, method, path string, op object) {
	t.Helper()
	name := method + " " + path
	_, section, ok := strings.Cut(page, `<section class="op" id="`+op["operationId"].(string)+`">`)
	if !ok {
		t.Errorf("%s has no section", name)
		return
	}
	section, _, _ = strings.Cut(section, "</section>")
	for _, want := range []string{">" + method + "</span> " + path + "<", html.EscapeString(op["summary"].(string))} {
		if !strings.Contains(section, want) {
			t.Errorf("%s does not show %q", name, want)
		}
	}
	scope, limited := op["x-scope"].(string)
	need := regexp.MustCompile(fmt.Sprintf(`Requires the role %v( or higher)?, and the scope %s if the API key`, op["x-role"], scope))
	if limited && !need.MatchString(section) || !limited && strings.Contains(section, "Requires the role") {
		t.Errorf("%s does not show that it is for the role %v and the scope %q", name, op["x-role"], scope)
	}
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		if want := "<code>" + d.parameter(p.(object)) + "</code>"; !strings.Contains(section, want) {
			t.Errorf("%s does not show the parameter %s", name, want)
		}
	}
	for status := range op["responses"].(object) {
		if status != "200" && !strings.Contains(section, "<code>"+status+"</code>") {
			t.Errorf("%s does not show the status %s", name, status)
		}
	}
}

// parameter returns the name of a parameter.
func (d document) parameter(p object) string {
	if ref, ok := p["$ref"].(string); ok {
		p = d.Components.Parameters[strings.TrimPrefix(ref, "#/components/parameters/")]
	}
	return p["name"].(string)
}

func TestPageLeadsNowhereElse(t *testing.T) {
	page := rendered(t, string(apispec.Document))
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
	// The page's Content-Security-Policy would block these.
	for _, pattern := range []string{`(?i)(<script)`, `(?i)(<link)`, `(?i)(<img)`, `(?i)(<iframe)`, `(?i)(\ssrc=)`, `(?i)(@import)`, `(?i)(url\()`, `(?i)\s(on\w+=)`, `(?i)\s(style=)`, `(?i)(javascript:)`} {
		if found := all(pattern, page); found != nil {
			t.Errorf("the page holds %q", found)
		}
	}
}

func TestExamplesOnThePageAreJSON(t *testing.T) {
	examples := all(`(?s)<pre>(.*?)</pre>`, rendered(t, string(apispec.Document)))
	for _, example := range examples {
		if text := html.UnescapeString(example); !json.Valid([]byte(text)) {
			t.Errorf("not JSON: %s", text)
		}
	}
	if len(examples) < 20 {
		t.Errorf("only %d examples", len(examples))
	}
}

func TestPageTakesTextAsText(t *testing.T) {
	page := rendered(t, `
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
	if _, err := apidocs.Render([]byte("paths: [")); err == nil {
		t.Error("a document that cannot be read is taken")
	}
}
