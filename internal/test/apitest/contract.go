package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// Contract checks responses against openapi.yaml.
type Contract struct {
	Document *openapi3.T
	// operations holds the operations by the pattern under which mux finds them.
	operations map[string]*openapi3.Operation
	mux        *http.ServeMux
}

// Load reads a document. Objects are closed by default: a response with fields that the document does not
// describe breaks the contract.
func Load(document []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	c := &Contract{Document: doc, operations: map[string]*openapi3.Operation{}, mux: http.NewServeMux()}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			c.operations[method+" "+path] = op
			c.mux.Handle(method+" "+path, http.NotFoundHandler())
		}
	}
	for _, s := range doc.Components.Schemas {
		closeObjects(s.Value)
	}
	return c, nil
}

// closeObjects makes a schema, and the unnamed schemas inside it, reject fields that they do not describe.
func closeObjects(s *openapi3.Schema) {
	if s.Type.Is("object") && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		s.AdditionalProperties.Has = new(bool)
	}
	inside := slices.AppendSeq([]*openapi3.SchemaRef{s.Items, s.AdditionalProperties.Schema}, maps.Values(s.Properties))
	for _, inner := range inside {
		if inner != nil && inner.Ref == "" {
			closeObjects(inner.Value)
		}
	}
}

// Mismatches returns the differences between a decoded value and one of the document's schemas.
func (c *Contract) Mismatches(schema string, value any) []string {
	ref, ok := c.Document.Components.Schemas[schema]
	if !ok {
		return []string{"the document has no schema " + schema}
	}
	return mismatches(ref.Value, value)
}

func mismatches(s *openapi3.Schema, value any) []string {
	err := s.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsResponse(),
		openapi3.WithStringFormatValidator("date-time", openapi3.NewCallbackValidator(isTimeInUTC)))
	if err == nil {
		return nil
	}
	return slices.Sorted(slices.Values(flat(err)))
}

func isTimeInUTC(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && at.Location() != time.UTC {
		return errors.New("not in UTC")
	}
	return err
}

func flat(err error) (texts []string) {
	if several, ok := err.(openapi3.MultiError); ok { //nolint:errorlint // it must not look into a SchemaError, whose place would be lost
		for _, inner := range several {
			texts = append(texts, flat(inner)...)
		}
		return texts
	}
	var one *openapi3.SchemaError
	if !errors.As(err, &one) {
		return []string{err.Error()}
	}
	if several := openapi3.MultiError(nil); errors.As(one.Origin, &several) {
		return flat(several)
	}
	return []string{strings.Join(one.JSONPointer(), ".") + ": " + one.Reason}
}

// operation finds the operation of a request. Paths that the router would redirect have none.
func (c *Contract) operation(r *http.Request) (string, *openapi3.Operation) {
	if p := r.URL.EscapedPath(); p != path.Clean(p) {
		return "", nil
	}
	_, pattern := c.mux.Handler(r)
	return pattern, c.operations[pattern]
}

// promised returns what the document says about a response with this status. It is nil if the document says
// nothing, as for paths outside the API.
func (c *Contract) promised(r *http.Request, status int) (*openapi3.Response, error) {
	name, op := c.operation(r)
	if op == nil {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			return nil, nil
		}
		if status < http.StatusBadRequest {
			return nil, fmt.Errorf("status %d, and the document has no such operation", status)
		}
		return c.Document.Components.Responses["Failure"].Value, nil
	}
	for _, key := range []string{strconv.Itoa(status), "default"} {
		if response := op.Responses.Value(key); response != nil {
			return response.Value, nil
		}
	}
	return nil, fmt.Errorf("%s does not promise the status %d", name, status)
}

// head checks the headers of a response, and returns the schema of its body if that is JSON.
func (c *Contract) head(r *http.Request, status int, header http.Header) (*openapi3.Schema, []string) {
	response, err := c.promised(r, status)
	if err != nil {
		return nil, []string{err.Error()}
	}
	if response == nil {
		return nil, nil
	}
	var found []string
	for name, promised := range response.Headers {
		value := header.Get(name)
		if value == "" {
			found = append(found, "the header "+name+" is missing")
			continue
		}
		found = append(found, mismatches(promised.Value.Schema.Value, value)...)
	}
	given, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	content := response.Content[given]
	if content == nil && onlyJSON(r) {
		switch {
		case given == "application/json":
			content = response.Content["application/problem+json"]
		case given == "text/plain" && status == http.StatusUnauthorized:
			return nil, found
		}
	}
	if err != nil || content == nil {
		return nil, append(found, fmt.Sprintf("the content type %q is not promised", header.Get("Content-Type")))
	}
	if !strings.HasSuffix(given, "json") || r.Method == http.MethodHead {
		return nil, found
	}
	return content.Schema.Value, found
}

// onlyJSON reports whether a request gets errors as application/json, and 401 as text.
// The document describes this for all operations at once, in its introduction.
func onlyJSON(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "application/problem+json")
}

// Answer checks a whole response.
func (c *Contract) Answer(r *http.Request, status int, header http.Header, body []byte) []string {
	schema, found := c.head(r, status, header)
	if schema == nil {
		return found
	}
	return append(found, encodedMismatches(schema, body)...)
}

func encodedMismatches(s *openapi3.Schema, body []byte) []string {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return []string{err.Error()}
	}
	return mismatches(s, value)
}

// Transport fails t for every response of next that breaks the contract. A body is checked when it has been
// read to its end.
func (c *Contract) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return transport{c, t, next}
}

type transport struct {
	*Contract
	t    testing.TB
	next http.RoundTripper
}

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := tr.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	schema, found := tr.head(r, res.StatusCode, res.Header)
	for _, m := range found {
		tr.t.Errorf("contract: %s %s: %s", r.Method, r.URL.Path, m)
	}
	if schema != nil {
		res.Body = &checkedBody{ReadCloser: res.Body, check: func(body []byte) {
			for _, m := range encodedMismatches(schema, body) {
				tr.t.Errorf("contract: %s %s: %s\n%.2000s", r.Method, r.URL.Path, m, body)
			}
		}}
	}
	return res, nil
}

// checkedBody is a body that is checked at its end.
type checkedBody struct {
	io.ReadCloser
	read  []byte
	check func([]byte)
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = append(b.read, p[:n]...)
	if errors.Is(err, io.EOF) && b.check != nil {
		b.check(b.read)
		b.check = nil
	}
	return n, err
}
