// Command provenance prints an in-toto statement about how the files of a release were built,
// a SLSA v1 provenance. It is as trustworthy as the machine that it runs on: sign its output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const repository = "https://github.com/fairlead-mesh/fairlead"

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	Definition definition `json:"buildDefinition"`
	Details    details    `json:"runDetails"`
}

type definition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []resource        `json:"resolvedDependencies"`
}

type details struct {
	Builder  builder  `json:"builder"`
	Metadata metadata `json:"metadata"`
}

type builder struct {
	ID string `json:"id"`
}

type metadata struct {
	InvocationID string `json:"invocationId,omitempty"`
}

func main() {
	version := flag.String("version", "", "version, as printed by git describe")
	commit := flag.String("commit", "", "commit")
	architectures := flag.String("architectures", "", "architectures that were built")
	builtBy := flag.String("builder", "", "URI of who built the files")
	invocation := flag.String("invocation", "", "URI of the run that built the files, if there is one")
	bases := flag.String("bases", "", "base images of the proxy and certbot images, as NAME@sha256:DIGEST, separated by spaces")
	images := flag.String("images", "", "file with the name and the digest of each image")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *commit == "" || *builtBy == "" {
		fmt.Fprintln(os.Stderr, "usage: provenance -version V -commit C -builder URI [-images FILE] SHA256SUMS")
		os.Exit(2)
	}
	s, err := describe(flag.Arg(0), *images, *commit, strings.Fields(*bases))
	if err == nil {
		s.Predicate.Definition.ExternalParameters = map[string]string{"version": *version, "architectures": *architectures}
		s.Predicate.Details = details{builder{*builtBy}, metadata{*invocation}}
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "provenance:", err)
		os.Exit(1)
	}
}

// describe returns the statement about the files that sums lists, and about the images.
func describe(sums, images, commit string, bases []string) (s statement, err error) {
	s.Type = "https://in-toto.io/Statement/v1"
	s.PredicateType = "https://slsa.dev/provenance/v1"
	s.Predicate.Definition.BuildType = repository + "/blob/main/docs/release.md#what-the-provenance-says"
	err = eachLine(sums, func(digest, name string) error {
		s.Subject = append(s.Subject, resource{Name: name, Digest: map[string]string{"sha256": digest}})
		return nil
	})
	if err != nil {
		return s, err
	}
	if images != "" {
		err = eachLine(images, func(name, digest string) error {
			digest, ok := strings.CutPrefix(digest, "sha256:")
			if !ok {
				return fmt.Errorf("%s: no SHA-256 digest of %s", images, name)
			}
			s.Subject = append(s.Subject, resource{Name: name, Digest: map[string]string{"sha256": digest}})
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	s.Predicate.Definition.ResolvedDependencies, err = dependencies(commit, bases)
	return s, err
}

// eachLine calls add with the two fields of each line.
func eachLine(name string, add func(first, second string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 {
			return fmt.Errorf("%s: %q has not two fields", name, lines.Text())
		}
		if err := add(fields[0], fields[1]); err != nil {
			return err
		}
	}
	return lines.Err()
}

// dependencies returns the source and the tools of the build. Modules and npm packages are in
// the SBOMs.
func dependencies(commit string, bases []string) ([]resource, error) {
	found := []resource{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": commit}}}
	for _, tool := range []struct {
		uri     string
		command []string
	}{
		{"pkg:generic/go@", []string{"go", "env", "GOVERSION"}},
		{"pkg:generic/node@", []string{"node", "--version"}},
	} {
		out, err := exec.CommandContext(context.Background(), tool.command[0], tool.command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(tool.command, " "), err)
		}
		found = append(found, resource{URI: tool.uri + strings.TrimLeft(strings.TrimSpace(string(out)), "gov")})
	}
	for _, b := range bases {
		name, digest, ok := strings.Cut(b, "@sha256:")
		if !ok {
			return nil, errors.New(b + ": a base image is named with its digest")
		}
		found = append(found, resource{URI: "pkg:docker/" + strings.Replace(name, ":", "@", 1), Digest: map[string]string{"sha256": digest}})
	}
	return found, nil
}
