package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// npmPackage is an entry of a package-lock.json.
type npmPackage struct {
	Path      string `json:"-"` // relative to the directory of the lock file
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	Licence   string `json:"license"`
	Dev       bool   `json:"dev"`
}

// name returns the last part of the path, with its scope.
func (p npmPackage) name() string {
	const modules = "node_modules/"
	return p.Path[strings.LastIndex(p.Path, modules)+len(modules):]
}

// lockedPackages returns the packages in the lock file, without development
// dependencies.
func lockedPackages(dir string) (found []npmPackage, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct{ Packages map[string]npmPackage }
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, err
	}
	for path, p := range lock.Packages {
		if path != "" && !p.Dev {
			p.Path = path
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b npmPackage) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

func components(packages []npmPackage) (list []component) {
	for _, p := range packages {
		purl := "pkg:npm/" + strings.Replace(p.name(), "@", "%40", 1) + "@" + p.Version
		c := component{
			Type: "library", Ref: purl, Name: p.name(), Version: p.Version, PURL: purl,
			Properties: []property{{"npm:integrity", p.Integrity}, {"npm:license", p.Licence}},
		}
		if p.Licence != "" {
			c.Licences = []licence{{p.Licence}}
		}
		list = append(list, c)
	}
	return list
}

// packageLicences returns the licence texts that the packages contain. For a package
// without one, it uses the licence named in package.json.
func packageLicences(dir string, packages []npmPackage) (string, error) {
	var b strings.Builder
	for _, p := range packages {
		title := p.name() + " " + p.Version
		_, err := appendTexts(&b, title, filepath.Join(dir, p.Path))
		if err == nil {
			continue
		}
		if p.Licence == "" || !errors.Is(err, errNoLicence) {
			return "", err
		}
		fmt.Fprintf(&b, "==== %s ====\n\nLicence: %s\n\n", title, p.Licence)
	}
	return b.String(), nil
}
