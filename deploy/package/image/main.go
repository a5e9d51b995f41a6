// Command image writes the image of the server or of the console as an OCI archive for all
// architectures, from binaries that are already built. The same input gives the same bytes.
// The images are those of deploy/docker/Dockerfile; a test compares both.
//
// An archive is an OCI image layout in a tar file. It also contains the manifest.json of
// `docker save`, so that `docker load` accepts it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	kind := flag.String("image", "", "server or console")
	name := flag.String("name", "", "name in the registry, without a tag")
	tag := flag.String("tag", "", "tag of the image")
	version := flag.String("version", "", "version for the label")
	revision := flag.String("revision", "", "commit for the label")
	created := flag.String("created", "", "time of the build, in RFC 3339 format")
	out := flag.String("out", "", "the archive")
	flag.Parse()
	if err := run(*kind, *name, *tag, *version, *revision, *created, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run writes the archive and prints the name and the digest of the image. Each program is
// an architecture and a file, as in amd64=dist/fairlead.
func run(kind, name, tag, version, revision, created, out string, programs []string) error {
	if name == "" || tag == "" || out == "" || len(programs) == 0 {
		return errors.New("set -name, -tag, -out and at least one ARCH=BINARY; -help lists all flags")
	}
	when, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return err
	}
	i, err := describe(kind)
	if err != nil {
		return err
	}
	config := i.config
	config.Labels = map[string]string{
		"org.opencontainers.image.title":       i.title,
		"org.opencontainers.image.description": i.description,
		"org.opencontainers.image.source":      "https://github.com/fairlead-mesh/fairlead",
		"org.opencontainers.image.licenses":    "BSD-3-Clause",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.revision":    revision,
		"org.opencontainers.image.created":     created,
	}
	l := newLayout(when)
	base, err := l.addLayer(i.files())
	if err != nil {
		return err
	}
	for _, p := range programs {
		arch, file, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("%q: want ARCH=BINARY", p)
		}
		binary, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		program, err := l.addLayer([]entry{dir("usr/", 0o755), dir("usr/bin/", 0o755), {name: "usr/bin/" + i.program, mode: 0o755, content: binary}})
		if err != nil {
			return err
		}
		if err := l.addImage(arch, config, name+":"+tag+"-"+arch, base, program); err != nil {
			return err
		}
	}
	digest, err := l.write(out, name+":"+tag, tag)
	if err == nil {
		fmt.Printf("%s:%s %s\n", name, tag, digest)
	}
	return err
}
