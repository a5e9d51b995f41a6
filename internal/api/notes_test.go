package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNotesSayWhoWroteThemAndWhen(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		f := populated(t, s)
		path := "/api/v1/node/" + f.node
		read := func() object { return f.call("GET", path, nil).ok()["node"].(object) }
		if note, ok := read()["note"]; ok {
			t.Errorf("a new node has the note %v", note)
		}
		etag := f.call("GET", path, nil).header.Get("ETag")

		wrote := f.call("PUT", path+"/note", object{"text": "rack 7,\n\tZürich 🗄"})
		node := wrote.ok()["node"].(object)
		row := s.audit()[len(s.audit())-1]
		want := object{"text": "rack 7,\n\tZürich 🗄", "author": row.Actor.String(), "time": node["updatedAt"]}
		for name, got := range map[string]any{"answer": node["note"], "node": read()["note"]} {
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if row.Verb+" "+row.Kind != "changed node" || !strings.Contains(string(row.After), "rack 7") || strings.Contains(string(row.Before), "rack 7") {
			t.Errorf("the audit has %s %s: %s → %s", row.Verb, row.Kind, row.Before, row.After)
		}
		if a := f.call("PUT", path+"/note", object{"text": "other"}, "If-Match: "+etag); a.status != 412 {
			t.Errorf("a change of an outdated node is answered %d", a.status)
		}
		if a := f.call("PUT", path+"/note", object{"txt": "other"}); a.status != 400 {
			t.Errorf("a misspelt member is answered %d", a.status)
		}

		same := f.call("PUT", path+"/note", object{"text": want["text"]})
		if same.ok(); same.header.Get("Mesh-Revision") != wrote.header.Get("Mesh-Revision") {
			t.Error("the same text again is a commit")
		}
		if node := f.call("PUT", path+"/note", object{"text": ""}).ok()["node"].(object); node["note"] != nil {
			t.Errorf("the removed note is %v", node["note"])
		}
		if now := f.call("GET", path, nil).header.Get("ETag"); now != etag {
			t.Errorf("without its note the node has the ETag %s, not %s as before", now, etag)
		}
		if n := len(s.log.lines(t, "node note changed")); n != 2 {
			t.Errorf("%d changes are logged, want 2", n)
		}
	})
}

func TestNotesAreTextOfLimitedLength(t *testing.T) {
	f := populated(t, sqlite(t))
	set := func(text string) *answer {
		return f.call("PUT", "/api/v1/node/"+f.node+"/note", object{"text": text})
	}
	set(strings.Repeat("ü", 1000)).ok()
	set(strings.Repeat("ü", 1001)).fails(400, "Bad Request", "the note has 1001 characters; the maximum is 1000", "text")
	set("bell\a").fails(400, "Bad Request", "text contains the unprintable character U+0007", "text")
	set("\ufffd").fails(400, "Bad Request", "text is not valid UTF-8", "text")
}
