package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// entry is a file in a layer, or a directory if its name ends with a slash.
type entry struct {
	name    string
	mode    int64
	owner   int // user and group
	content []byte
}

func dir(name string, mode int64) entry { return entry{name: name, mode: mode} }

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       config    `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
	History      []history `json:"history"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// loadable is an entry of the manifest.json that docker load reads.
type loadable struct {
	Config   string
	RepoTags []string
	Layers   []string
}

type layer struct {
	descriptor
	diffID string // digest of the uncompressed layer
}

// layout collects the blobs and images of an OCI image layout.
type layout struct {
	when      time.Time
	blobs     map[string][]byte
	images    []descriptor
	loadables []loadable
}

func newLayout(when time.Time) *layout {
	return &layout{when: when.UTC(), blobs: map[string][]byte{}}
}

func digest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func file(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

func (l *layout) addBlob(mediaType string, blob []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(blob), Size: len(blob)}
	l.blobs[file(d.Digest)] = blob
	return d
}

func (l *layout) addJSON(mediaType string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	return l.addBlob(mediaType, text), err
}

func (l *layout) addLayer(entries []entry) (layer, error) {
	var plain, packed bytes.Buffer
	if err := writeTar(&plain, l.when, entries); err != nil {
		return layer{}, err
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return layer{}, err
	}
	if err := z.Close(); err != nil {
		return layer{}, err
	}
	return layer{l.addBlob(layerType, packed.Bytes()), digest(plain.Bytes())}, nil
}

// addImage adds the image of one architecture. docker load gives it the tag local.
func (l *layout) addImage(arch string, c config, local string, layers ...layer) error {
	p := platform{Architecture: arch, OS: "linux"}
	full := imageConfig{
		Created: l.when, Architecture: p.Architecture, OS: p.OS, Config: c,
		RootFS: rootFS{Type: "layers"},
	}
	m := manifest{SchemaVersion: 2, MediaType: manifestType}
	var files []string
	for _, layer := range layers {
		full.RootFS.DiffIDs = append(full.RootFS.DiffIDs, layer.diffID)
		full.History = append(full.History, history{l.when, "deploy/package/image"})
		m.Layers = append(m.Layers, layer.descriptor)
		files = append(files, file(layer.Digest))
	}
	var err error
	if m.Config, err = l.addJSON(configType, full); err != nil {
		return err
	}
	d, err := l.addJSON(manifestType, m)
	if err != nil {
		return err
	}
	d.Platform = &p
	l.images = append(l.images, d)
	l.loadables = append(l.loadables, loadable{Config: file(m.Config.Digest), RepoTags: []string{local}, Layers: files})
	return nil
}

// write writes the archive and returns the digest of the image for all architectures.
func (l *layout) write(out, name, tag string) (string, error) {
	all, err := l.addJSON(indexType, index{SchemaVersion: 2, MediaType: indexType, Manifests: l.images})
	if err != nil {
		return "", err
	}
	all.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
	files := maps.Clone(l.blobs)
	files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	if files["index.json"], err = json.Marshal(index{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{all}}); err != nil {
		return "", err
	}
	if files["manifest.json"], err = json.Marshal(l.loadables); err != nil {
		return "", err
	}
	entries := []entry{dir("blobs/", 0o755), dir("blobs/sha256/", 0o755)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{name: name, mode: 0o644, content: files[name]})
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, l.when, entries); err != nil {
		return "", err
	}
	return all.Digest, os.WriteFile(out, archive.Bytes(), 0o644)
}

func writeTar(w io.Writer, when time.Time, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: when,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}
