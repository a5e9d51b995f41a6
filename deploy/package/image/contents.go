package main

import (
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image is what one target of the Dockerfile builds.
type image struct {
	title, description string
	program            string
	config             config
	own                []entry // in addition to those that both images have
}

// config is the part of the image configuration that containers are started with.
type config struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Labels       map[string]string
}

// describe returns the image of that name.
func describe(kind string) (image, error) {
	switch kind {
	case "server":
		return image{
			title: "Fairlead", description: "Coordination service for a private mesh", program: "fairlead",
			config: config{
				User: "10001:10001", ExposedPorts: set("8080/tcp", "9090/tcp", "3478/udp"), Env: []string{"PATH=/usr/bin"},
				Entrypoint: []string{"fairlead"}, Cmd: []string{"serve"}, Volumes: set("/var/lib/fairlead"), WorkingDir: "/",
			},
			// Compose mounts over /tmp and /run/fairlead: if one is missing, runc 1.1 loses the mode
			// of the mount when the container restarts.
			own: []entry{
				dir("tmp/", 0o1777),
				{name: "run/fairlead/", mode: 0o750, owner: 10001},
				dir("var/", 0o755), dir("var/lib/", 0o755),
				{name: "var/lib/fairlead/", mode: 0o750, owner: 10001},
			},
		}, nil
	case "console":
		return image{
			title: "Fairlead console", description: "Admin console of the Fairlead coordination service", program: "fairlead-console",
			config: config{
				User: "10002:10002", ExposedPorts: set("3000/tcp"),
				Env:        []string{"PATH=/usr/bin", "FAIRLEAD_CONSOLE_STATE_DIR=/var/lib/fairlead-console"},
				Entrypoint: []string{"fairlead-console"}, Cmd: []string{"serve"}, Volumes: set("/var/lib/fairlead-console"), WorkingDir: "/",
			},
			own: []entry{
				dir("var/", 0o755), dir("var/lib/", 0o755),
				{name: "var/lib/fairlead-console/", mode: 0o700, owner: 10002},
			},
		}, nil
	default:
		return image{}, fmt.Errorf("unknown image %q: use server or console", kind)
	}
}

func set(names ...string) map[string]struct{} {
	found := map[string]struct{}{}
	for _, n := range names {
		found[n] = struct{}{}
	}
	return found
}

// files returns everything in the image except the program.
func (i image) files() []entry {
	return append([]entry{
		dir("etc/", 0o755),
		{name: "etc/group", mode: 0o644, content: []byte("fairlead:x:10001:\nconsole:x:10002:\n")},
		{name: "etc/passwd", mode: 0o644, content: []byte("fairlead:x:10001:10001::/var/lib/fairlead:/nonexistent\nconsole:x:10002:10002::/:/nonexistent\n")},
		dir("etc/ssl/", 0o755), dir("etc/ssl/certs/", 0o755),
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		dir("run/", 0o755),
	}, i.own...)
}

// certificates returns the root certificates of Mozilla, as the Go project publishes them. A
// file on the build machine would make the image depend on that machine. Roots that are
// trusted only with constraints are left out, because a PEM file cannot contain those.
func certificates() (file []byte) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			file = append(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return file
}
