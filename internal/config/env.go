package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	variablePrefix = "FAIRLEAD_"
	configVariable = variablePrefix + "CONFIG" // names the file; not a key
	fileSuffix     = "_FILE"                   // the variable names a file that contains the value

	// Variables of the command line, which reads them itself.
	cliServer = variablePrefix + "CLI_SERVER"
	cliAPIKey = variablePrefix + "CLI_API_KEY"
)

// serviceLink matches the variables that Kubernetes sets in every pod for a service whose name starts with
// fairlead.
var serviceLink = regexp.MustCompile(`^FAIRLEAD_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)=|_PORT=(tcp|udp|sctp)://`)

// variablesOf returns the variables of env that configure the server. Empty ones count as not set, because
// compose files pass unset variables on as empty.
func variablesOf(env []string) map[string]string {
	out := map[string]string{}
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		switch {
		case !strings.HasPrefix(name, variablePrefix), serviceLink.MatchString(e),
			name == cliServer, name == cliAPIKey, strings.HasPrefix(name, variablePrefix+"CONSOLE_"):
		case text == "":
			delete(out, name)
		default:
			out[name] = text
		}
	}
	return out
}

// warnOfHeadscale warns about variables that Headscale would read. The server does not, because a variable that
// overrides the file must be visible as the server's own.
func (l *loader) warnOfHeadscale(env []string) {
	const prefix = "HEADSCALE_"
	own := map[string]bool{}
	for _, k := range l.keys {
		own[k.variable()] = true
	}
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		rest, ok := strings.CutPrefix(name, prefix)
		if instead := variablePrefix + rest; ok && text != "" && own[instead] {
			l.warn(place{file: name}, "", "ignored; set "+instead+" instead")
		}
	}
}

func (l *loader) readEnvironment(variables map[string]string) {
	byVariable := map[string]key{}
	for _, k := range l.keys {
		byVariable[k.variable()] = k
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		at := place{file: name}
		if name == configVariable {
			continue
		}
		if k, ok := byVariable[name]; ok {
			l.setText(k, variables[name], at)
			continue
		}
		direct, isFile := strings.CutSuffix(name, fileSuffix)
		k, ok := byVariable[direct]
		switch {
		case !isFile || !ok:
			known := append(slices.Sorted(maps.Keys(byVariable)), configVariable, cliServer, cliAPIKey)
			l.problem(at, "", unknown("variable", name, known))
		case variables[direct] != "":
			l.problem(at, k.path, fmt.Errorf("%s is also set; remove one of the two", direct))
		default:
			l.setFromFile(k, variables[name], at)
		}
	}
}

func (l *loader) setFromFile(k key, file string, at place) {
	data, err := readLimited(file)
	s := strings.TrimRight(string(data), "\r\n")
	if err == nil && s == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		l.problem(at, k.path, fmt.Errorf("cannot read the value from %s: %w", file, err))
		return
	}
	l.setText(k, s, at)
}

// setText sets a key from the text of a variable: YAML for structured keys, the plain value for all others.
func (l *loader) setText(k key, s string, at place) {
	if !k.structured {
		l.set(k, scalarNode(s), at)
		return
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(s), &document); err != nil || len(document.Content) == 0 {
		l.problem(at, k.path, errors.New("must be "+k.takes+", as one line of YAML"))
		return
	}
	l.set(k, document.Content[0], at)
}
