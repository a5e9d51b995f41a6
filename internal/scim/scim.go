// Package scim lets an identity provider push users and groups, with version 2.0 of SCIM (RFC 7643 and 7644), as
// Okta and Microsoft Entra ID use it.
//
// It decodes requests, calls the use cases of control.Directory, and encodes the results. It does not authenticate
// callers, and does not decide what a change means.
//
// It accepts what these providers send although the standard does not allow it: operations in upper case, booleans
// as strings, a change without a path, and attributes that the server does not know, which it ignores.
package scim

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Path is the prefix of all paths.
const Path = "/scim/v2/"

const (
	contentType = "application/scim+json"
	// maxBody is enough for a group with the maximum number of members.
	maxBody = 4 << 20
	maxPage = 1_000

	schemaUser     = "urn:ietf:params:scim:schemas:core:2.0:User"
	schemaGroup    = "urn:ietf:params:scim:schemas:core:2.0:Group"
	schemaError    = "urn:ietf:params:scim:api:messages:2.0:Error"
	schemaList     = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	schemaConfig   = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
	schemaResource = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	schemaSchema   = "urn:ietf:params:scim:schemas:core:2.0:Schema"
)

// Config configures a Server. All fields are required.
type Config struct {
	Directory *control.Directory
	Ledger    *ledger.Ledger
	Log       *slog.Logger
	// Actor returns who sent a request that was authenticated.
	Actor func(*http.Request) mesh.Actor
	// ServerURL is the address of the server, without a slash at the end.
	ServerURL string
}

// Server answers the requests of a provider.
type Server struct {
	Config
	mux *http.ServeMux
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{Config: c, mux: http.NewServeMux()}
	for pattern, h := range map[string]func(w http.ResponseWriter, r *http.Request) error{
		"GET " + Path + "ServiceProviderConfig": s.config,
		"GET " + Path + "ResourceTypes":         s.resourceTypes,
		"GET " + Path + "Schemas":               s.schemas,
		"GET " + Path + "Users":                 s.listUsers,
		"POST " + Path + "Users":                s.createUser,
		"GET " + Path + "Users/{id}":            s.showUser,
		"PUT " + Path + "Users/{id}":            s.replaceUser,
		"PATCH " + Path + "Users/{id}":          s.patchUser,
		"DELETE " + Path + "Users/{id}":         s.deleteUser,
		"GET " + Path + "Groups":                s.listGroups,
		"POST " + Path + "Groups":               s.createGroup,
		"GET " + Path + "Groups/{id}":           s.showGroup,
		"PUT " + Path + "Groups/{id}":           s.replaceGroup,
		"PATCH " + Path + "Groups/{id}":         s.patchGroup,
		"DELETE " + Path + "Groups/{id}":        s.deleteGroup,
		"/":                                     func(http.ResponseWriter, *http.Request) error { return notFound() },
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				s.fail(w, err)
			}
		})
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// failure is an error in the form of the standard.
type failure struct {
	status int
	kind   string // the scimType, which may be empty
	text   string
}

func (f *failure) Error() string { return f.text }

func invalid(kind, text string) error { return &failure{http.StatusBadRequest, kind, text} }

func notFound() error { return &failure{http.StatusNotFound, "", "unknown resource"} }

// Refuse answers a request with an error.
func Refuse(w http.ResponseWriter, status int, text string) {
	write(w, status, errorShape(&failure{status: status, text: text}))
}

func errorShape(f *failure) map[string]any {
	shape := map[string]any{"schemas": []string{schemaError}, "status": strconv.Itoa(f.status), "detail": f.text}
	if f.kind != "" {
		shape["scimType"] = f.kind
	}
	return shape
}

// fail is the only place that maps errors to responses.
func (s *Server) fail(w http.ResponseWriter, err error) {
	own, refused := new(failure), new(control.Refusal)
	switch {
	case errors.As(err, &own):
	case control.LosesLastAdmin(err):
		// Not a conflict, which providers resolve by looking for another object. They show an error, and retry.
		s.Log.Warn("the identity provider wants to disable the last administrator, who keeps all access until another person has the role admin", "error", err)
		own = &failure{http.StatusForbidden, "", err.Error()}
	case errors.As(err, &refused) && refused.Reason == control.NotFound:
		own = &failure{http.StatusNotFound, "", refused.Text}
	case errors.As(err, &refused) && refused.Reason == control.Conflict:
		own = &failure{http.StatusConflict, "uniqueness", refused.Text}
	case errors.As(err, &refused):
		own = &failure{http.StatusBadRequest, "invalidValue", refused.Text}
	case errors.Is(err, ledger.ErrUnavailable):
		own = &failure{http.StatusServiceUnavailable, "", "the database is unavailable; retry later"}
	default:
		s.Log.Error("SCIM request failed", "error", err)
		own = &failure{http.StatusInternalServerError, "", "internal error; the log says more"}
	}
	write(w, own.status, errorShape(own))
}

func write(w http.ResponseWriter, status int, shape any) {
	body, err := json.Marshal(shape)
	if err != nil {
		panic(err) // our own types can always be encoded
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// decode reads the body of a request.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &failure{http.StatusRequestEntityTooLarge, "", "the body is too large"}
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return invalid("invalidSyntax", "the body is not a valid JSON object for this request")
	}
	return nil
}

// meta describes a resource.
func (s *Server) meta(kind, collection, id string, created mesh.Time) map[string]any {
	m := map[string]any{"resourceType": kind, "location": s.ServerURL + Path + collection + "/" + id}
	if created != 0 {
		m["created"] = created.Time()
	}
	return m
}

// page is the part of a list that a request asks for.
type page struct{ start, count int }

func pageOf(r *http.Request) (page, error) {
	p := page{1, maxPage}
	for name, into := range map[string]*int{"startIndex": &p.start, "count": &p.count} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return p, invalid("invalidValue", name+" must be a number")
		}
		*into = n
	}
	p.start, p.count = max(p.start, 1), min(max(p.count, 0), maxPage)
	return p, nil
}

// list writes a page of resources.
func list[T any](w http.ResponseWriter, p page, all []T, shape func(T) any) error {
	from := min(p.start-1, len(all))
	to := min(from+p.count, len(all))
	resources := []any{}
	for _, v := range all[from:to] {
		resources = append(resources, shape(v))
	}
	write(w, http.StatusOK, map[string]any{
		"schemas": []string{schemaList}, "totalResults": len(all), "startIndex": p.start, "itemsPerPage": len(resources), "Resources": resources,
	})
	return nil
}

// filter is the only filter that is supported: an attribute that equals a text. The zero value matches everything.
type filter struct{ attribute, value string }

func filterOf(r *http.Request, attributes ...string) (f filter, err error) {
	text := strings.TrimSpace(r.URL.Query().Get("filter"))
	if text == "" {
		return f, nil
	}
	attribute, rest, _ := strings.Cut(text, " ")
	op, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	// Entra asks for an address by its type.
	if i := strings.Index(text, "].value"); i > 0 && strings.HasPrefix(strings.ToLower(text), "emails[") {
		attribute = "emails.value"
		op, value, _ = strings.Cut(strings.TrimSpace(text[i+len("].value"):]), " ")
	}
	for _, known := range attributes {
		if strings.EqualFold(attribute, known) && strings.EqualFold(op, "eq") && json.Unmarshal([]byte(value), &f.value) == nil {
			f.attribute = known
			return f, nil
		}
	}
	return f, invalid("invalidFilter", "use a filter of the form: "+strings.Join(attributes, " or ")+` eq "value"`)
}

// boolean is true, false, or one of them as a string, which Entra sends.
type boolean bool

// UnmarshalJSON implements json.Unmarshaler.
func (b *boolean) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseBool(strings.ToLower(strings.Trim(string(data), `"`)))
	*b = boolean(v)
	return err
}

// operations is the body of a PATCH request.
type operations struct {
	Operations []operation `json:"Operations"`
}

type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

const maxOperations = 1_000

func patchOf(w http.ResponseWriter, r *http.Request) ([]operation, error) {
	var in operations
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	if len(in.Operations) == 0 || len(in.Operations) > maxOperations {
		return nil, invalid("invalidSyntax", "Operations must have from 1 to "+strconv.Itoa(maxOperations)+" entries")
	}
	for i := range in.Operations {
		o := &in.Operations[i]
		switch o.Op = strings.ToLower(o.Op); o.Op {
		case "add", "replace", "remove":
		default:
			return nil, invalid("invalidSyntax", "op must be add, replace or remove")
		}
	}
	return in.Operations, nil
}

// each calls set with each attribute that an operation changes. Without a path, the value is an object with
// attributes.
func (o operation) each(set func(path string, value json.RawMessage) error) error {
	if o.Path != "" {
		return set(o.Path, o.Value)
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(o.Value, &all) != nil {
		return invalid("noTarget", "without a path, the value must be an object")
	}
	for path, value := range all {
		if err := set(path, value); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string; null and nothing are empty.
func text(value json.RawMessage) (s string, err error) {
	if len(value) > 0 && json.Unmarshal(value, &s) != nil {
		return "", invalid("invalidValue", "the value must be a string")
	}
	return s, nil
}
