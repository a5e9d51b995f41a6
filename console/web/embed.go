// Package web holds the built bundle of the console. The code that serves it is in
// console/bff.
package web

import (
	"embed"
	"io/fs"
)

// The directory has at least .keep, so that the console builds without npm; its
// page then says that the bundle is missing.
//
//go:embed all:dist
var dist embed.FS

// Bundle returns the built files: index.html and assets/, each asset with compressed
// copies that end in .br and .gz. Without a build it has no index.html.
func Bundle() fs.FS {
	bundle, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // "dist" is a valid path
	}
	return bundle
}
