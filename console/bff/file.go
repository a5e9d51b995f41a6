package bff

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// readLimited reads a small file or pipe.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err == nil && len(text) > maxConfigFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxConfigFile)
	}
	return text, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
