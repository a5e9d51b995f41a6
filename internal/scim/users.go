package scim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// user is what a provider sends about a user.
type user struct {
	UserName    string   `json:"userName"`
	ExternalID  *string  `json:"externalId"`
	DisplayName *string  `json:"displayName"`
	Name        *name    `json:"name"`
	Emails      []email  `json:"emails"`
	Active      *boolean `json:"active"`
}

type name struct {
	Formatted  string `json:"formatted"`
	GivenName  string `json:"givenName"`
	FamilyName string `json:"familyName"`
}

func (n name) String() string {
	if n.Formatted != "" {
		return n.Formatted
	}
	return strings.TrimSpace(n.GivenName + " " + n.FamilyName)
}

type email struct {
	Value   string  `json:"value"`
	Type    string  `json:"type,omitempty"`
	Primary boolean `json:"primary,omitempty"`
}

// address returns the primary address, or else the first one.
func address(all []email) string {
	for _, e := range all {
		if e.Primary {
			return e.Value
		}
	}
	if len(all) > 0 {
		return all[0].Value
	}
	return ""
}

// apply changes what the provider has sent. A missing active changes nothing: some providers omit it.
func (in user) apply(u *control.DirectoryUser) {
	if in.UserName != "" {
		u.UserName = in.UserName
	}
	if in.ExternalID != nil {
		u.ExternalID = *in.ExternalID
	}
	if in.Name != nil {
		u.DisplayName = in.Name.String()
	}
	if in.DisplayName != nil && *in.DisplayName != "" {
		u.DisplayName = *in.DisplayName
	}
	switch {
	case in.Emails != nil:
		u.Email = address(in.Emails)
	case u.Email == "" && strings.Contains(u.UserName, "@"):
		u.Email = u.UserName
	}
	if in.Active != nil {
		u.Active = (*bool)(in.Active)
	}
}

func (s *Server) userShape(u *mesh.User) any {
	shape := map[string]any{
		"schemas": []string{schemaUser}, "id": u.ID.String(), "userName": control.DirectoryName(u), "active": !u.Suspended(),
		"meta": s.meta("User", "Users", u.ID.String(), u.CreatedAt),
	}
	if u.DirectoryID != "" {
		shape["externalId"] = u.DirectoryID
	}
	if u.DisplayName != "" {
		shape["displayName"], shape["name"] = u.DisplayName, map[string]string{"formatted": u.DisplayName}
	}
	if u.Email != "" {
		shape["emails"] = []email{{Value: u.Email, Type: "work", Primary: true}}
	}
	return shape
}

func userID(r *http.Request) (mesh.UserID, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, notFound()
	}
	return mesh.UserID(id), nil
}

func (s *Server) listUsers(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	f, err := filterOf(r, "userName", "externalId", "id", "emails.value", "emails")
	if err != nil {
		return err
	}
	var all []*mesh.User
	for u := range s.Ledger.World().Users.All() {
		if f.matchesUser(u) {
			all = append(all, u)
		}
	}
	return list(w, p, all, s.userShape)
}

func (f filter) matchesUser(u *mesh.User) bool {
	switch f.attribute {
	case "userName":
		// Before the provider has said what it calls a user, either identifies the user.
		return mesh.FoldName(control.DirectoryName(u)) == mesh.FoldName(f.value) || u.DirectoryName == "" && mesh.FoldName(u.Name) == mesh.FoldName(f.value)
	case "externalId":
		return f.value != "" && u.DirectoryID == f.value
	case "id":
		return u.ID.String() == f.value
	case "emails", "emails.value":
		return f.value != "" && mesh.FoldName(u.Email) == mesh.FoldName(f.value)
	}
	return true
}

func (s *Server) showUser(w http.ResponseWriter, r *http.Request) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	u, ok := s.Ledger.World().Users.Get(id)
	if !ok {
		return notFound()
	}
	write(w, http.StatusOK, s.userShape(u))
	return nil
}

func (s *Server) createUser(w http.ResponseWriter, r *http.Request) error {
	var in user
	if err := decode(w, r, &in); err != nil {
		return err
	}
	var u control.DirectoryUser
	in.apply(&u)
	created, err := s.Directory.CreateUser(r.Context(), s.Actor(r), u)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.ServerURL+Path+"Users/"+created.ID.String())
	write(w, http.StatusCreated, s.userShape(created))
	return nil
}

func (s *Server) replaceUser(w http.ResponseWriter, r *http.Request) error {
	var in user
	if err := decode(w, r, &in); err != nil {
		return err
	}
	return s.changeUser(w, r, func(u *control.DirectoryUser) error {
		in.apply(u)
		return nil
	})
}

func (s *Server) changeUser(w http.ResponseWriter, r *http.Request, change func(*control.DirectoryUser) error) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	u, err := s.Directory.ChangeUser(r.Context(), s.Actor(r), id, change)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, s.userShape(u))
	return nil
}

func (s *Server) patchUser(w http.ResponseWriter, r *http.Request) error {
	changes, err := patchOf(w, r)
	if err != nil {
		return err
	}
	return s.changeUser(w, r, func(u *control.DirectoryUser) error {
		for _, o := range changes {
			err := o.each(func(path string, value json.RawMessage) error {
				if o.Op == "remove" {
					value = nil
				}
				return patchUser(u, path, value)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// patchUser changes one attribute. Attributes that the server does not store are ignored.
func patchUser(u *control.DirectoryUser, path string, value json.RawMessage) (err error) {
	path = strings.ToLower(strings.TrimPrefix(path, schemaUser+":"))
	switch {
	case path == "active":
		var b boolean
		if json.Unmarshal(value, &b) != nil { // removing it must not suspend anyone
			return invalid("invalidValue", "active must be true or false")
		}
		u.Active = (*bool)(&b)
	case path == "username":
		u.UserName, err = text(value)
	case path == "externalid":
		u.ExternalID, err = text(value)
	case path == "displayname", path == "name.formatted":
		u.DisplayName, err = text(value)
	case path == "name":
		var n name
		if len(value) > 0 && json.Unmarshal(value, &n) != nil {
			return invalid("invalidValue", "name must be an object")
		}
		if formatted := n.String(); formatted != "" {
			u.DisplayName = formatted
		}
	case path == "emails":
		var all []email
		if len(value) > 0 && json.Unmarshal(value, &all) != nil {
			return invalid("invalidValue", "emails must be a list")
		}
		u.Email = address(all)
	case path == "emails.value", strings.HasPrefix(path, "emails[") && strings.HasSuffix(path, "].value"):
		u.Email, err = text(value)
	}
	return err
}

func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request) error {
	id, err := userID(r)
	if err == nil {
		err = s.Directory.DeleteUser(r.Context(), s.Actor(r), id)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
