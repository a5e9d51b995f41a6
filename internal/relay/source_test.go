package relay_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

const yamlMap = `# our relays
regions:
  1: null # theirs is too far away
  900:
    regionid: 900
    regioncode: hq
    regionname: Headquarters
    nodes:
      - name: 900a
        regionid: 900
        hostname: relay.example
        ipv4: 198.51.100.1
        ipv6: 2001:db8::1
        stunport: 0
        stunonly: false
        derpport: 8443
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveText runs a server that responds to every request with this text.
func serveText(t *testing.T, status int, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func encode(t *testing.T, m *tailcfg.DERPMap) string {
	t.Helper()
	text, err := relay.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLaterSourcesReplaceRegions(t *testing.T) {
	first, second := relayMap(1, 2, 900), relayMap(2, 3)
	second.Regions[2].RegionName = "Second"
	second.OmitDefaultRegions = true
	second.HomeParams = &tailcfg.DERPHomeParams{RegionScore: map[int]float64{2: 0.5}}
	source := &relay.Source{
		URLs:  []string{serveText(t, 200, encode(t, first)), serveText(t, 200, encode(t, second))},
		Paths: []string{write(t, "relays.yaml", yamlMap), write(t, "relays.json", `{"Regions":{"3":null},"Later":"unknown"}`)},
	}
	got, err := source.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &tailcfg.DERPMap{
		OmitDefaultRegions: true,
		HomeParams:         second.HomeParams,
		Regions: map[int]*tailcfg.DERPRegion{
			2: second.Regions[2],
			900: {
				RegionID: 900, RegionCode: "hq", RegionName: "Headquarters",
				Nodes: []*tailcfg.DERPNode{{Name: "900a", RegionID: 900, HostName: "relay.example", IPv4: "198.51.100.1", IPv6: "2001:db8::1", DERPPort: 8443}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMistakesInFilesHaveTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(yamlMap, "hostname", "hostnam", 1):                 "invalid relay map: line 11: field hostnam not found",
		strings.Replace(yamlMap, "8443", "https", 1):                       "invalid relay map: line 16: cannot unmarshal !!str `https` into int",
		strings.Replace(yamlMap, "regions:", "regions: [", 1):              "invalid relay map: yaml: ",
		strings.Replace(yamlMap, "  900:\n", "  900:\n    nodes: []\n", 1): `invalid relay map: line 9: mapping key "nodes" already defined at line 5`,
		yamlMap + "---\nregions: {}\n":                                     "unexpected data after the document",
		"":                                                                 "the document is empty",
		"- a\n":                                                            "invalid relay map: line 1: cannot unmarshal !!seq",
		strings.Repeat("# long\n", 200_000):                                "too large: the limit for relay maps is 1048576 bytes",
	} {
		path := write(t, "relays.yaml", text)
		if _, err := relay.LoadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := relay.LoadFile(write(t, "relays.json", yamlMap)); err == nil || !strings.Contains(err.Error(), "relays.json: invalid relay map: invalid character") {
		t.Error(err)
	}
	if _, err := relay.LoadFile("missing.yaml"); err == nil || !strings.Contains(err.Error(), "missing.yaml: cannot read: ") {
		t.Error(err)
	}
}

func TestBadDownloadsGiveNoMap(t *testing.T) {
	good := serveText(t, 200, encode(t, relayMap(900)))
	closed := httptest.NewServer(nil)
	closed.Close()
	for url, want := range map[string]string{
		serveText(t, 500, encode(t, relayMap(1))):                            ": unexpected response: 500 Internal Server Error",
		serveText(t, 200, "<html>please log in</html>"):                      ": invalid relay map: invalid character '<'",
		serveText(t, 200, ""):                                                ": invalid relay map: unexpected end of JSON input",
		serveText(t, 200, encode(t, relayMap(1))+strings.Repeat(" ", 1<<20)): ": too large: the limit for relay maps is 1048576 bytes",
		serveText(t, 200, `{"Regions":{"7":{"RegionID":8}}}`):                "combined relay map: invalid: region 7: RegionID is 8",
		strings.Replace(closed.URL, "//", "//me:correct-horse@", 1):          "http://me:xxxxx@127.0.0.1",
		"http://me:correct-horse@relays.example:port":                        "derp.urls: invalid URL: ",
	} {
		source := &relay.Source{URLs: []string{good, url}}
		m, err := source.Load(t.Context())
		if err == nil || m != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		} else if strings.Contains(err.Error(), "correct-horse") {
			t.Errorf("tells the password: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := &relay.Source{URLs: []string{good}}
	if _, err := source.Load(ctx); err == nil {
		t.Error("loads after its end")
	}
	if _, err := new(relay.Source).Load(t.Context()); err == nil || !strings.Contains(err.Error(), "the map has no regions") {
		t.Error(err)
	}
}
