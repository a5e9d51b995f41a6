package main

import (
	"bytes"
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const rolesHead = `<!-- Generated from api/openapi.yaml; to update it, run make gen. -->

# Roles and operations

This table shows which operations of the [API](api.md) each [role of a person](identity.md#roles) may call. The command line and the
console use the same operations. ` + "`own`" + ` means: only for the person's own devices and pre-auth keys. To a member, everything else does
not exist. Operations that need no authentication are not listed.

An API key of nobody has one of the roles ` + "`read`, `operator` and `admin`" + `, and owns nothing. An API key can also be limited by
[scopes](api.md#scopes).
`

// rolesPage returns the document that shows which role may call which operation.
func rolesPage(all []operation) []byte {
	var b bytes.Buffer
	b.WriteString(rolesHead)
	section := ""
	for _, op := range all {
		if op.Role == rolePublic {
			continue
		}
		if len(op.Tags) > 0 && op.Tags[0] != section {
			section = op.Tags[0]
			fmt.Fprintf(&b, "\n## Operations on %s\n\n| operation | request |", section)
			for _, role := range mesh.PersonRoles() {
				fmt.Fprintf(&b, " %s |", role)
			}
			b.WriteString("\n|---|---|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | `%s %s` |", op.Summary, op.Method, op.Path)
		for _, role := range mesh.PersonRoles() {
			fmt.Fprintf(&b, " %s |", op.allows(role))
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

// allows returns what a role may do with the operation, as the table shows it.
func (o *operation) allows(r mesh.Role) string {
	switch {
	case o.anyone(), r != mesh.RoleMember && r.AtLeast(mesh.Role(o.Role)):
		return "yes"
	case o.Member == memberOwn:
		return memberOwn
	}
	return "–"
}
