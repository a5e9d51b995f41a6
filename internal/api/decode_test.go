package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// bodies returns one value of each request body type.
func bodies() []any {
	return []any{
		new(openapi.UserCreation), new(openapi.PreAuthKeyCreation), new(openapi.PreAuthKeySelection),
		new(openapi.APIKeyCreation), new(openapi.APIKeySelection), new(openapi.MachineEnrolment),
		new(openapi.DNSChange),
	}
}

func TestSnakeCaseOfEveryMember(t *testing.T) {
	want := map[string]string{
		"displayName": "display_name", "preApproved": "pre_approved", "pictureUrl": "picture_url", "aclTags": "acl_tags", "preAuthKey": "pre_auth_key", "machineKey": "machine_key",
		"nodeKey": "node_key", "clientVersion": "client_version", "routableIPs": "routable_ips", "magicDNS": "magic_dns", "overrideLocalDNS": "override_local_dns", "searchDomains": "search_domains", "extraRecords": "extra_records",
	}
	for _, body := range bodies() {
		for f := range reflect.TypeOf(body).Elem().Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			expected, ok := want[name]
			if !ok {
				expected = strings.ToLower(name)
			}
			if got := snake(name); got != expected {
				t.Errorf("%s: %s, want %s", name, got, expected)
			}
		}
	}
}

// FuzzBody checks every request body type: whatever the bytes, decoding ends with a value
// or with an error for the caller, and the value survives a round trip of encoding and
// decoding.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"name":"alice","displayName":"A","email":null,"picture_url":"x"}`,
		`{"user":1,"reusable":true,"ephemeral":false,"expiration":"2027-01-31T12:00:00.5+01:00","aclTags":["tag:a",7]}`,
		`{"id":12,"key":"flp_b81KzQx0LmN4_x","user":"alice"}`, `{"prefix":"abcd"}`, `{"expiration":""}`, `{"expiration":"9999-12-31T23:59:59-23:59"}`,
		`{"preAuthKey":"k","machineKey":"mkey:00","nodeKey":"nodekey:00","hostname":"h\ud800","os":"","routable_ips":["10.0.0.0/8"],"tags":[null]}`,
		`{"magicDNS":true,"split":{"a.example":["9.9.9.9"],"b":[]},"extra_records":[{"name":"a","type":"A","value":"9.9.9.9"}]}`,
		`{"split":{"a":null},"extraRecords":[{"name":1}]}`, `{"split":[],"extraRecords":[[]]}`,
		`{"name":-1e400}`, `{"name":"a","name":"b"}`, "{\"name\":\"\xff\"}", `{"aclTags":[[[]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, body := range bodies() {
			err := decodeBody(data, body)
			var bad *badRequest
			if err != nil {
				if !errors.As(err, &bad) || bad.text == "" {
					t.Fatalf("%T: not an answer: %v", body, err)
				}
				continue
			}
			once, err := json.Marshal(body)
			if err != nil {
				t.Fatalf("%T: decoded and cannot be encoded: %v", body, err)
			}
			again := reflect.New(reflect.TypeOf(body).Elem()).Interface()
			if err := decodeBody(once, again); err != nil {
				t.Fatalf("%T: encoded and cannot be decoded: %v: %s", body, err, once)
			}
			twice, err := json.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(once), string(twice)); diff != "" {
				t.Fatalf("%T: the second round differs:\n%s", body, diff)
			}
		}
	})
}
