package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is far above any real configuration. It keeps a wrong path, such as a database file or a device,
// from being read into memory.
const maxFile = 1 << 20

var syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(?s:(.*))$`)

// Load reads the configuration at path, or at FAIRLEAD_CONFIG if path is empty, or else at DefaultFile, and
// lets the variables of env, in the form of os.Environ, override its keys. The error is of type Problems.
func Load(path string, env []string) (*Config, error) {
	variables := variablesOf(env)
	named := path != ""
	if !named {
		path, named = variables[configVariable]
	}
	if path == "" {
		path, named = DefaultFile, false
	}
	l := newLoader(path)
	whole := l.readFile(named)
	l.readEnvironment(variables)
	l.warnOfHeadscale(env)
	if whole { // otherwise keys of the file would be reported as missing
		l.settle()
	}
	if len(l.problems) > 0 {
		inOrder(l.problems, path)
		return nil, l.problems
	}
	inOrder(l.config.Warnings, path)
	l.config.Warnings = folded(l.config.Warnings)
	return l.config, nil
}

// A loader fills one Config and collects problems.
type loader struct {
	file     string
	config   *Config
	keys     map[string]key
	sections map[string]bool
	foreign  map[string]foreignKey
	known    []string // keys and sections, in the order of the table
	given    map[string]place
	broken   map[string]bool // keys whose value was invalid
	problems Problems
}

// A place is a line of the file, or an environment variable without a line.
type place struct {
	file string
	line int
}

func newLoader(file string) *loader {
	l := &loader{
		file:     file,
		config:   withDefaults(),
		keys:     map[string]key{},
		sections: map[string]bool{},
		foreign:  map[string]foreignKey{},
		given:    map[string]place{},
		broken:   map[string]bool{},
	}
	for _, k := range keysOf(l.config) {
		l.keys[k.path] = k
		l.known = append(l.known, k.path)
		l.addSections(k.path)
	}
	l.known = append(l.known, slices.Sorted(maps.Keys(l.sections))...)
	for _, f := range foreignKeys() {
		l.foreign[f.path] = f
		l.addSections(f.path)
	}
	return l
}

func (l *loader) addSections(path string) {
	for i, r := range path {
		if r == '.' {
			l.sections[path[:i]] = true
		}
	}
}

// withDefaults returns a Config in which every key that has a default is set to it. An invalid default is a
// mistake in the table.
func withDefaults() *Config {
	c := &Config{}
	for _, k := range keysOf(c) {
		if k.fallback != "" {
			k.read(scalarNode(k.fallback), func(_ *yaml.Node, _ string, err error) {
				panic(fmt.Sprintf("default of %s: %v", k.path, err))
			})
		}
	}
	return c
}

func scalarNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// readFile reads the keys of the file. It returns false if the file cannot be read or is not valid YAML.
func (l *loader) readFile(named bool) bool {
	data, err := readLimited(l.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return true
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such file; create it, or choose another with --config or " + configVariable)
	case errors.Is(err, fs.ErrPermission):
		err = errors.New("permission denied; make it readable for the user that runs the server")
	}
	l.config.File = l.file
	if err != nil {
		l.problem(place{file: l.file}, "", err)
		return false
	}
	defer l.checkMode()

	first, second, err := parseYAML(data)
	switch {
	case err != nil:
		l.syntaxProblem(data, err)
		return false
	case second != nil:
		l.problem(place{l.file, second.Line}, "", errors.New("more than one YAML document; remove this one"))
	case first == nil || first.Tag == "!!null":
	case first.Kind != yaml.MappingNode:
		l.problem(place{l.file, first.Line}, "", wrongType("must be a section of keys, got "+kindOf(first)))
	default:
		l.readSection(first, "")
	}
	return true
}

// checkMode warns if the file contains a secret and everyone on the machine can read it. Its group may read it,
// because our packages set that to the server's own group.
func (l *loader) checkMode() {
	const everyone = 0o004
	info, err := os.Stat(l.file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&everyone == 0 {
		return
	}
	for _, k := range keysOf(l.config) {
		if len(k.secrets()) > 0 {
			l.warn(l.at(k.path), k.path, fmt.Sprintf("this is a secret, but all users can read the file (mode %04o); run: chmod o= %s", info.Mode().Perm(), l.file))
			return
		}
	}
}

// parseYAML returns the first two documents, or nil for one that does not exist.
func parseYAML(data []byte) (first, second *yaml.Node, err error) {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	for _, content := range []**yaml.Node{&first, &second} {
		var document yaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		*content = document.Content[0]
	}
	return first, second, nil
}

func readLimited(path string) ([]byte, error) {
	var data []byte
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	if len(data) > maxFile {
		err = errors.New("larger than 1 MiB; is this the right file?")
	}
	if operation := new(fs.PathError); errors.As(err, &operation) {
		err = operation.Err // the caller names the file
	}
	return data, err
}

// syntaxProblem reports an error of the YAML parser, with clearer texts for common errors. It omits what the
// parser quotes: an unknown anchor may be a password that starts with *.
func (l *loader) syntaxProblem(data []byte, err error) {
	m := syntaxError.FindStringSubmatch(err.Error())
	least, _ := strconv.Atoi(m[1])
	text := m[2]
	switch {
	case strings.HasPrefix(text, "unknown anchor"):
		text = "a value that begins with * must be quoted"
	case strings.HasPrefix(text, "found unexpected end of stream"):
		text, least = "a quotation mark is not closed", 1 // where the quoted text starts, not where the file ends
	}
	l.problem(place{l.file, syntaxLine(data, max(least, 1))}, "", errors.New(text))
}

// syntaxLine returns the first line, not before least, at which data stops being valid YAML. The parser's own
// line is often only the start of the enclosing block.
func syntaxLine(data []byte, least int) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	return least + sort.Search(len(lines)-least, func(i int) bool {
		_, _, err := parseYAML(bytes.Join(lines[:least+i], nil))
		return err != nil
	})
}

func (l *loader) readSection(n *yaml.Node, under string) {
	lines := map[string]int{}
	for name, v := range pairs(n) {
		path, at := under+name.Value, place{l.file, name.Line}
		if name.Kind != yaml.ScalarNode || name.Tag == "!!merge" {
			l.problem(at, strings.TrimSuffix(under, "."), errors.New("keys must be plain names; YAML merge keys are not supported"))
			continue
		}
		if first := lines[name.Value]; first > 0 {
			l.problem(at, path, fmt.Errorf("already set on line %d; remove one of them", first))
			continue
		}
		lines[name.Value] = name.Line
		k, isKey := l.keys[path]
		switch f, isForeign := l.foreign[path]; {
		case strings.Contains(name.Value, "."):
			l.problem(at, path, errors.New("nest the key under its sections instead of using dots"))
		case isForeign:
			l.readForeign(f, v, at)
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null" && (isKey || l.sections[path]):
		case isKey:
			l.set(k, v, at)
		case l.sections[path] && v.Kind == yaml.MappingNode:
			l.readSection(v, path+".")
		case l.sections[path]:
			l.problem(at, path, wrongType("must be a section of keys, got "+kindOf(v)))
		default:
			l.problem(at, path, unknown("key", path, l.known))
		}
	}
}

// set reads n into its key. An empty string leaves a key without a default unchanged, because that is how files
// express "not set".
func (l *loader) set(k key, n *yaml.Node, at place) {
	if n.Style&yaml.TaggedStyle != 0 {
		l.problem(at, k.path, errors.New("begins with !, which is a tag in YAML; put the value in quotes"))
		l.broken[k.path] = true
		return
	}
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		if k.fallback != "" {
			l.problem(at, k.path, fmt.Errorf("must not be empty; remove the key to use the default %s", k.fallback))
			l.broken[k.path] = true
		}
		return
	}
	l.given[k.path] = at
	k.read(n, func(n *yaml.Node, suffix string, err error) {
		here := at
		if at.line > 0 {
			here.line = n.Line
		}
		l.problem(here, k.path+suffix, err)
		l.broken[k.path] = true
	})
}

func (l *loader) problem(at place, path string, err error) {
	l.problems = append(l.problems, Problem{
		File: at.file, Line: at.line, Key: path, Text: err.Error(), WrongType: errors.As(err, new(wrongType)),
	})
}

func (l *loader) warn(at place, path, text string) {
	l.config.Warnings = append(l.config.Warnings, Problem{File: at.file, Line: at.line, Key: path, Text: text})
}

func (l *loader) warnMinor(at place, path, text string) {
	l.config.Warnings = append(l.config.Warnings, Problem{File: at.file, Line: at.line, Key: path, Text: text, Minor: true})
}
