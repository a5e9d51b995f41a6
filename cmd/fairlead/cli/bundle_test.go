package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpacked returns the files of a bundle by name.
func unpacked(t *testing.T, bundle io.Reader) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(compressed); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "fairlead/")] = string(text)
	}
}

func names(files map[string]string) []string {
	var list []string
	for name := range files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func TestBundleHasWhatSupportNeeds(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	r := fairlead(t, socket, []string{"debug", "bundle", "--file", "-", "--with-policy", "--log-file", "-"}, func(env *Env) {
		env.Environ = []string{
			"FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_UNIX_SOCKET=" + socket, "FAIRLEAD_SERVER_URL=https://mesh.example.com",
			"FAIRLEAD_DNS_MAGIC_DNS=false", "FAIRLEAD_METRICS_LISTEN_ADDR=127.0.0.1:1", "FAIRLEAD_DATABASE_TYPE=sqlite",
			"FAIRLEAD_DATABASE_POSTGRES_PASS=correct-horse", "FAIRLEAD_DERP_URLS=https://relays.example.com/map?a=b&token=battery-staple",
			"FAIRLEAD_DNS_NAMESERVERS_GLOBAL=https://dns.example.com/battery-staple/dns-query",
		}
		env.Stdin = strings.NewReader("login with correct-horse failed\n")
	})
	files := unpacked(t, &r.stdout)
	want := []string{
		"README.txt", "audit.json", "configuration.txt", "counts.json", "digest.json", "dns.json", "goroutines.txt", "health.json", "heap.txt", "host.txt",
		"log.txt", "nodes.json", "policy.hujson", "routes.json", "version.json", "webhooks.json",
	}
	if diff := cmp.Diff(want, names(files)); diff != "" || r.status != 0 {
		t.Errorf("status %d, %s, files (-want +got):\n%s", r.status, &r.stderr, diff)
	}
	for _, host := range []string{`"https://relays.example.com"`, `"https://dns.example.com"`} {
		if text := files["configuration.txt"]; !strings.Contains(text, host) || strings.Contains(text, "battery-staple") {
			t.Errorf("the configuration has no %s, or more than hosts:\n%s", host, text)
		}
	}
	if got := files["log.txt"]; got != "login with *** failed\n" {
		t.Errorf("log: %q", got)
	}
	for name, part := range map[string]string{
		"configuration.txt": `database.postgres.pass: "[redacted]"`, "counts.json": `"nodes expired": 1`, "README.txt": "Missing:\nmetrics.txt: ",
	} {
		if !strings.Contains(files[name], part) {
			t.Errorf("%s has no %s:\n%s", name, part, files[name])
		}
	}
}

func TestBundleOfAServerThatIsNotThereHasTheRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	r := fairlead(t, "/nowhere", []string{"debug", "bundle", "--file", file})
	want := "Missing: version.json, health.json, digest.json, goroutines.txt, heap.txt, nodes.json, routes.json, counts.json, webhooks.json, dns.json, audit.json: no server is listening"
	if r.status != 0 || !strings.Contains(r.stderr.String(), want) || strings.Count(r.stderr.String(), "no server is listening") != 1 {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
	r = fairlead(t, "/nowhere", []string{"debug", "bundle", "--file", file})
	if r.status != 1 || !strings.Contains(r.stderr.String(), "already exists; remove it, or choose another file with --file") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
}

func TestBundleWithoutTheLogThatWasNamedIsWrittenAndFails(t *testing.T) {
	socket, _ := listen(t, cannedServer())
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	r := fairlead(t, socket, []string{"debug", "bundle", "--file", file, "--log-file", "/nowhere"})
	if r.status != 1 || !strings.Contains(r.stderr.String(), "Error: the bundle does not include the log: open /nowhere: ") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
	bundle, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer bundle.Close()
	if files := unpacked(t, bundle); !strings.Contains(files["README.txt"], "\nlog.txt: open /nowhere: ") || files["nodes.json"] == "" {
		t.Errorf("files %v, README:\n%s", names(files), files["README.txt"])
	}
}

func TestBundleIsNotWrittenOntoATerminal(t *testing.T) {
	r := fairlead(t, "/nowhere", []string{"debug", "bundle", "--file", "-"}, screenOf(80, 24))
	if r.status != 2 || r.stdout.Len() > 0 {
		t.Errorf("status %d, %d bytes", r.status, r.stdout.Len())
	}
}

func TestBundleFromElsewhereSaysNothingAboutThisMachine(t *testing.T) {
	files := unpacked(t, &fairlead(t, "", []string{"debug", "bundle", "--file", "-", "--server", remote(t), "--api-key", "flk_x"}).stdout)
	for _, local := range []string{"host.txt", "configuration.txt", "metrics.txt"} {
		if files[local] != "" || strings.Contains(files["README.txt"], local) {
			t.Errorf("it has %s", local)
		}
	}
}

func TestEndOfALogBeginsWithALine(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	text, err := (&tool{Env: Env{Stdin: strings.NewReader(strings.Repeat(line, 20_000))}}).tail("-")
	if err != nil || len(text)%len(line) != 0 || len(text) < bundledLog-len(line) {
		t.Errorf("%d bytes (%v)", len(text), err)
	}
}

func TestMaskHidesWhatLooksLikeASecret(t *testing.T) {
	hex := strings.Repeat("0f1e2d3c", 8)
	m := &mask{}
	m.know("", "correct-horse", "mesh", "Postgres")
	for text, want := range map[string]string{
		"key flk_7Qd0XhVb2mTa_abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE.": "key flk_7Qd0XhVb2mTa_***.",
		"flp_b81KzQx0LmN4_***": "flp_b81KzQx0LmN4_***",
		"secret flw_3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA":               "secret flw_***",
		`{"key":"flx_b81KzQx0LmN4_abcdefghijklmnopqrstu"}`:                     `{"key":"flx_b81KzQx0LmN4_***"}`,
		"Authorization: Bearer abc.def":                                        "Authorization: Bearer ***",
		"privkey:" + hex:                                                       "privkey:***",
		"nodekey:" + hex + " mkey:" + hex:                                      "nodekey:0f1e2d3c… mkey:0f1e2d3c…",
		"-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nx": "***\nx",
		"-----BEGIN PRIVATE KEY-----\nabc":                                     "***",
		"postgres://mesh:correct-staple@db/mesh":                               "postgres://mesh:***@db/mesh",
		"pass=correct-horse":                                                   "pass=***",
		"https://mesh.example.com:8080/x":                                      "https://mesh.example.com:8080/x",
	} {
		if got := m.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	got, err := m.members(`{"a":[{"clientSecret":"x","secret":"","name":"y"}],"password":"z"}`)
	if want := "{\n  \"a\": [\n    {\n      \"clientSecret\": \"***\",\n      \"name\": \"y\",\n      \"secret\": \"\"\n    }\n  ],\n  \"password\": \"***\"\n}\n"; got != want || err != nil {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestAddressesAreShortenedToTheirHosts(t *testing.T) {
	for text, want := range map[string]string{
		`{"urls":["https://a.example.com:8443/x?y=z\u0026token=t","HTTP://t@b.example.com/t"]}`: `{"urls":["https://a.example.com:8443","HTTP://b.example.com"]}`,
		`"// see https://c.example.com?t#t\nnext \"https://d.example.com/t\""`:                  `"// see https://c.example.com\nnext \"https://d.example.com\""`,
		"10.0.0.1 postgres://db/mesh": "10.0.0.1 postgres://db/mesh",
	} {
		if got := hosts(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// remote returns the address of a server reached over the network.
func remote(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(cannedServer())
	t.Cleanup(server.Close)
	return server.URL
}
