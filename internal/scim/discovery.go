package scim

import "net/http"

// config says what the server supports.
func (s *Server) config(w http.ResponseWriter, _ *http.Request) error {
	supported := func(yes bool) map[string]any { return map[string]any{"supported": yes} }
	write(w, http.StatusOK, map[string]any{
		"schemas": []string{schemaConfig}, "patch": supported(true), "changePassword": supported(false), "sort": supported(false), "etag": supported(false),
		"bulk":   map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": maxPage},
		"authenticationSchemes": []any{map[string]any{
			"type": "oauthbearertoken", "name": "API key", "description": "An API key with the scope scim, as a bearer token", "primary": true,
		}},
		"meta": map[string]any{"resourceType": "ServiceProviderConfig", "location": s.ServerURL + Path + "ServiceProviderConfig"},
	})
	return nil
}

func (s *Server) resourceTypes(w http.ResponseWriter, _ *http.Request) error {
	kind := func(name, endpoint, schema string) map[string]any {
		return map[string]any{
			"schemas": []string{schemaResource}, "id": name, "name": name, "endpoint": "/" + endpoint, "schema": schema,
			"meta": map[string]any{"resourceType": "ResourceType", "location": s.ServerURL + Path + "ResourceTypes/" + name},
		}
	}
	all := []map[string]any{kind("User", "Users", schemaUser), kind("Group", "Groups", schemaGroup)}
	return list(w, page{1, maxPage}, all, func(v map[string]any) any { return v })
}

func (s *Server) schemas(w http.ResponseWriter, _ *http.Request) error {
	attribute := func(name, kind, unique string, required bool, parts ...map[string]any) map[string]any {
		a := map[string]any{
			"name": name, "type": kind, "multiValued": false, "required": required, "caseExact": false, "mutability": "readWrite", "returned": "default", "uniqueness": unique,
		}
		if len(parts) > 0 {
			a["subAttributes"] = parts
		}
		return a
	}
	plain := func(name string) map[string]any { return attribute(name, "string", "none", false) }
	several := func(a map[string]any) map[string]any {
		a["multiValued"] = true
		return a
	}
	schema := func(id, name string, attributes ...map[string]any) map[string]any {
		return map[string]any{
			"schemas": []string{schemaSchema}, "id": id, "name": name, "attributes": attributes,
			"meta": map[string]any{"resourceType": "Schema", "location": s.ServerURL + Path + "Schemas/" + id},
		}
	}
	all := []map[string]any{
		schema(schemaUser, "User",
			attribute("userName", "string", "server", true), plain("externalId"), plain("displayName"),
			attribute("name", "complex", "none", false, plain("formatted"), plain("givenName"), plain("familyName")),
			several(attribute("emails", "complex", "none", false, plain("value"), plain("type"), attribute("primary", "boolean", "none", false))),
			attribute("active", "boolean", "none", false)),
		schema(schemaGroup, "Group",
			attribute("displayName", "string", "server", true), plain("externalId"),
			several(attribute("members", "complex", "none", false, plain("value"), plain("display")))),
	}
	return list(w, page{1, maxPage}, all, func(v map[string]any) any { return v })
}
