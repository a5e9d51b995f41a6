// Package headscale maps the database and the configuration of Headscale 0.22 to 0.30 to the objects of a mesh. It
// is pure: it opens neither files nor databases. Columns are found by name, because their order and number differ
// between versions.
//
// Export maps a mesh to a database of Headscale 0.29.
//
// A repair is a value that was changed because Fairlead does not accept it. A refusal is a reason not to import.
package headscale
