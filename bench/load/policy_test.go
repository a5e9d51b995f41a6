//go:build !race

package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call sends a request to the API and decodes the response, unless into is nil.
func (s target) call(t *testing.T, method, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.server.API(t.Context(), method, path, string(text))
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// key creates a reusable pre-auth key.
func (s target) key(t *testing.T, fields map[string]any) string {
	t.Helper()
	var made struct{ PreAuthKey struct{ Key string } }
	fields["reusable"] = true
	s.call(t, http.MethodPost, "/api/v1/preauthkey", fields, &made)
	return made.PreAuthKey.Key
}

func (s target) savePolicy(t *testing.T, tagOwners map[string][]string, acls []map[string]any) {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"tagOwners": tagOwners, "acls": acls})
	if err != nil {
		t.Fatal(err)
	}
	s.call(t, http.MethodPut, "/api/v1/policy", map[string]any{"policy": string(doc)}, nil)
}

// saveRing saves a policy with one rule for each of many tags: its nodes may use the given port of each other, and of the nodes
// of the next tag. A node therefore sees those of three tags.
func (s target) saveRing(t *testing.T, tags, port int) {
	t.Helper()
	owners := map[string][]string{}
	var rules []map[string]any
	for i := range tags {
		owners[ringTag(i)] = []string{}
		rules = append(rules, map[string]any{
			"action": "accept", "src": []string{ringTag(i)},
			"dst": []string{fmt.Sprintf("%s:%d", ringTag(i), port), fmt.Sprintf("%s:%d", ringTag((i+1)%tags), port)},
		})
	}
	s.savePolicy(t, owners, rules)
}

func ringTag(i int) string { return fmt.Sprintf("tag:ring-%03d", i) }

// prepareRing saves the policy and returns the flags with which the generator spreads its nodes evenly over the tags.
func (s target) prepareRing(t *testing.T, tags int) (flags []string) {
	t.Helper()
	s.saveRing(t, tags, 443)
	var keys []string
	var visible strings.Builder
	for i := range tags {
		keys = append(keys, s.key(t, map[string]any{"aclTags": []string{ringTag(i)}}))
		fmt.Fprintln(&visible, (i+tags-1)%tags, i, (i+1)%tags)
	}
	file := filepath.Join(t.TempDir(), "visibility")
	if err := os.WriteFile(file, []byte(visible.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--auth-key=" + strings.Join(keys, ","), "--visibility=" + file}
}
