package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"tailscale.com/tailcfg"
)

const (
	maxSource     = 1 << 20
	sourceTimeout = 30 * time.Second
)

// Source is where relay maps come from: first the URLs, then the files at Paths.
type Source struct {
	URLs, Paths []string
	Client      *http.Client // defaults to a plain http.Client
}

// Load reads all sources and returns one map that passes Check, or the error of the first source that fails.
// A region of a later source replaces the region with the same number; null removes it.
func (s *Source) Load(ctx context.Context) (*tailcfg.DERPMap, error) {
	merged := &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{}}
	for _, address := range s.URLs {
		m, err := s.download(ctx, address)
		if err != nil {
			return nil, err
		}
		merge(merged, m)
	}
	for _, path := range s.Paths {
		m, err := LoadFile(path)
		if err != nil {
			return nil, err
		}
		merge(merged, m)
	}
	maps.DeleteFunc(merged.Regions, func(_ int, r *tailcfg.DERPRegion) bool { return r == nil })
	if err := Check(merged); err != nil {
		return nil, failed("combined relay map", "invalid", err)
	}
	return merged, nil
}

func merge(into, m *tailcfg.DERPMap) {
	maps.Copy(into.Regions, m.Regions)
	into.OmitDefaultRegions = into.OmitDefaultRegions || m.OmitDefaultRegions
	if m.HomeParams != nil {
		if into.HomeParams == nil {
			into.HomeParams = &tailcfg.DERPHomeParams{RegionScore: map[int]float64{}}
		}
		maps.Copy(into.HomeParams.RegionScore, m.HomeParams.RegionScore)
	}
}

// sourceError is why a source has no map. Failures of the same kind are logged once, even if their texts
// differ.
type sourceError struct {
	source, kind string
	err          error
}

func failed(source, kind string, err error) error { return &sourceError{source, kind, err} }

func (e *sourceError) Error() string { return e.source + ": " + e.kind + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func (s *Source) download(ctx context.Context, address string) (*tailcfg.DERPMap, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, failed("derp.urls", "invalid URL", withoutURL(err))
	}
	name := req.URL.Redacted() // the URL may contain a password
	resp, err := cmp.Or(s.Client, new(http.Client)).Do(req)
	if err != nil {
		return nil, failed(name, "cannot connect", withoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, failed(name, "unexpected response", errors.New(resp.Status))
	}
	return read(name, resp.Body, parseJSON)
}

// withoutURL removes the URL from an error, because it is logged already and may contain a password.
func withoutURL(err error) error {
	if e := new(url.Error); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// LoadFile reads a relay map: JSON in the client's format if the name ends in .json, else YAML, with the
// client's names in lower case. Regions may be null or missing, because only all sources together must form a
// complete map.
func LoadFile(path string) (*tailcfg.DERPMap, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failed(path, "cannot read", err)
	}
	defer f.Close()
	parse := parseYAML
	if filepath.Ext(path) == ".json" {
		parse = parseJSON
	}
	return read(path, f, parse)
}

func read(source string, from io.Reader, parse func([]byte) (*tailcfg.DERPMap, error)) (*tailcfg.DERPMap, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxSource+1))
	if err != nil {
		return nil, failed(source, "cannot read", err)
	}
	if len(text) > maxSource {
		return nil, failed(source, "too large", fmt.Errorf("the limit for relay maps is %d bytes", maxSource))
	}
	m, err := parse(text)
	if err != nil {
		return nil, failed(source, "invalid relay map", err)
	}
	return m, nil
}

// parseJSON ignores unknown fields, because newer clients may know them.
func parseJSON(text []byte) (*tailcfg.DERPMap, error) {
	m := new(tailcfg.DERPMap)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return m, nil
}

// parseYAML rejects unknown fields, because a person wrote the file and probably mistyped a name.
func parseYAML(text []byte) (*tailcfg.DERPMap, error) {
	m := new(tailcfg.DERPMap)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err := decoder.Decode(m)
	var mistakes *yaml.TypeError
	switch {
	case errors.As(err, &mistakes):
		return nil, errors.New(goType.ReplaceAllString(strings.Join(mistakes.Errors, "; "), ""))
	case errors.Is(err, io.EOF):
		return nil, errors.New("the document is empty")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the document")
	}
	return m, nil
}

// goType matches the part of the decoder's messages that is meaningless to users.
var goType = regexp.MustCompile(` (in type|into) tailcfg\.\w+`)
