// Command sbom lists the components of a Go binary: its modules, in CycloneDX format, and
// the texts of their licences. It reads the build information that the linker wrote into
// the binary, so it lists what was linked, not what go.mod allows. For pages embedded in
// the binary, it lists the runtime packages in their lock file. It does not check for known
// vulnerabilities.
package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// document is the part of CycloneDX 1.6 that sbom writes.
type document struct {
	Schema      string      `json:"$schema"`
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

var errNoLicence = errors.New("no licence")

func main() {
	version := flag.String("version", "", "version of the binary")
	timestamp := flag.String("time", "", "time of the build, in RFC 3339 format")
	sbom := flag.String("sbom", "", "file for the list of modules")
	licences := flag.String("licences", "", "file for the texts of the licences")
	npm := flag.String("npm", "", "directory of a package-lock.json, installed, whose packages are in the binary too")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *timestamp == "" || *sbom == "" || *licences == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(flag.Arg(0), *npm, *version, *timestamp, *sbom, *licences); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(binary, npm, version, timestamp, sbom, licences string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	d := describe(info, version, timestamp)
	texts, err := licenceTexts(info, d.Components)
	if err != nil {
		return err
	}
	if npm != "" {
		packages, err := lockedPackages(npm)
		if err != nil {
			return err
		}
		d.Components = append(d.Components, components(packages)...)
		more, err := packageLicences(npm, packages)
		if err != nil {
			return err
		}
		texts += more
	}
	list, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(sbom, append(list, '\n'), 0o644), os.WriteFile(licences, []byte(texts), 0o644))
}

func describe(info *buildinfo.BuildInfo, version, timestamp string) document {
	main := library(info.Main.Path, version)
	main.Type = "application"
	main.Name = info.Path
	main.PURL += "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/")
	for _, s := range info.Settings {
		main.Properties = append(main.Properties, property{"build:" + s.Key, s.Value})
	}
	d := document{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   metadata{timestamp, main},
		Components: []component{library("std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, m := range info.Deps {
		m = linked(m)
		c := library(m.Path, m.Version)
		c.Properties = []property{{"go.sum", m.Sum}}
		d.Components = append(d.Components, c)
	}
	return d
}

// linked returns the module whose code is in the binary: m or its replacement.
func linked(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

func library(path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}

// licenceTexts returns the licences of Go and of every module in the binary, and adds their
// identifiers to the components, which are in the same order. A module without a licence is
// an error: we may not distribute it.
func licenceTexts(info *buildinfo.BuildInfo, components []component) (string, error) {
	root, err := goCommand("env", "GOROOT")
	if err != nil {
		return "", err
	}
	args := []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, m := range info.Deps {
		args = append(args, m.Path)
	}
	dirs, err := goCommand(args...)
	if err != nil {
		return "", err
	}
	if len(dirs) != len(info.Deps) {
		return "", fmt.Errorf("go list knows %d of %d modules: run it where the binary was built", len(dirs), len(info.Deps))
	}
	var b strings.Builder
	add := func(c *component, title, dir string) error {
		ids, err := appendTexts(&b, title, dir)
		if e := expression(ids); e != "" {
			c.Licences = []licence{{e}}
		}
		return err
	}
	if err := add(&components[0], "Go "+info.GoVersion, root[0]); err != nil {
		return "", err
	}
	for i, m := range info.Deps {
		m = linked(m)
		if err := add(&components[i+1], m.Path+" "+m.Version, dirs[i]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// appendTexts appends the licence files in a directory, and returns their identifiers.
func appendTexts(b *strings.Builder, title, dir string) (ids []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !licenceName.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		ids = append(ids, identify(string(text)))
		fmt.Fprintf(b, "==== %s: %s ====\n\n%s\n\n", title, f.Name(), strings.TrimSpace(string(text)))
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s: %w in %s", title, errNoLicence, dir)
	}
	return ids, nil
}

// goCommand returns the output lines of the go command.
func goCommand(args ...string) ([]string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}
