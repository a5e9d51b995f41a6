package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// FuzzEnrolment checks that no body causes a server error at POST /api/v1/machine, the
// only write operation that needs no credentials.
func FuzzEnrolment(f *testing.F) {
	s := sqlite(f)
	made := func(body object) string {
		return s.direct(s.handler, "POST", "/api/v1/preauthkey", body).ok()["preAuthKey"].(object)["key"].(string)
	}
	reusable, once := made(object{"aclTags": []string{"tag:a"}, "reusable": true}), made(object{"aclTags": []string{"tag:a"}})
	seed := func(body object) {
		data, err := json.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
	}
	seed(machine(1, "KEY"))
	seed(machine(1, "flp_AAAAAAAAAAAA_aaaa"))
	seed(with(machine(2, "KEY"), object{"tags": []string{"tag:a", "tag:b"}, "routableIPs": []string{"10.0.0.0/8", "::/0"}, "os": "linux"}))
	seed(with(machine(2, "KEY"), object{"hostname": "\x00\u202e\ufffd", "nodeKey": nodeKey(3)}))
	f.Add([]byte(`{"pre_auth_key":"KEY","machine_key":1,"hostname":"\ud800"}`), true)
	f.Add([]byte(nil), true)
	allowed := []int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge,
	}
	f.Fuzz(func(t *testing.T, body []byte, spend bool) {
		key := reusable
		if spend {
			key = once
		}
		body = bytes.ReplaceAll(body, []byte("KEY"), []byte(key))
		rec := serve(s.handler, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/machine", bytes.NewReader(body)))
		if !slices.Contains(allowed, rec.Code) {
			t.Fatalf("status %d: %s", rec.Code, rec.Body)
		}
		if !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("not JSON: %s", rec.Body)
		}
		if rec.Code != http.StatusOK {
			return
		}
		stored, err := s.store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stored.Digest() != s.ledger.World().Digest() {
			t.Fatalf("the database stored something else than was accepted: %s", rec.Body)
		}
	})
}
