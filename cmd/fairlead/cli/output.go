package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// format is the flag for the output format.
type format string

const (
	formatTable format = "table"
	formatWide  format = "wide" // a table with all columns, whatever the width of the terminal
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }

func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatWide, formatJSON, formatYAML:
		*f = format(s)
		return nil
	default:
		return errors.New("use table, wide, json or yaml")
	}
}

// show prints value in the API's format, or text for people.
func (t *tool) show(value any, text string) error {
	switch t.format {
	case formatJSON:
		encoded, err := encodeJSON(value, t.oneLine)
		if err != nil {
			return err
		}
		text = encoded
	case formatYAML:
		encoded, err := encodeYAML(value)
		if err != nil {
			return err
		}
		text = encoded
	case formatTable, formatWide:
		text = printable(text)
	}
	return t.write(text)
}

func (t *tool) write(text string) error {
	_, err := io.WriteString(t.Stdout, text)
	return err
}

// forPeople reports whether the output is for people.
func (t *tool) forPeople() bool { return t.format == formatTable || t.format == formatWide }

// screen returns the size of the terminal, or zeros if the output is not a terminal.
func (t *tool) screen() (width, height int) {
	if t.Size == nil || t.getenv("TERM") == "dumb" {
		return 0, 0
	}
	return t.Size()
}

func (t *tool) colour() bool {
	width, _ := t.screen()
	return width > 0 && t.getenv("NO_COLOR") == ""
}

// showResult connects and prints the object that an operation returns.
func showResult[R, T any](t *tool, call func(*apiclient.Client) ([]byte, error), object func(R) T, text func(T) string) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	result, err := decode[R](call(client))
	if err != nil {
		return err
	}
	shown := object(result)
	return t.show(shown, text(shown))
}

// done prints text after an operation with an empty response has succeeded.
func (t *tool) done(text string, args ...any) func(body []byte, err error) error {
	return func(body []byte, err error) error {
		empty, err := decode[apiclient.Empty](body, err)
		if err != nil {
			return err
		}
		return t.show(empty, fmt.Sprintf(text, args...)+"\n")
	}
}

// note prints a message that is only for people, not for scripts.
func (t *tool) note(text string, args ...any) {
	if t.forPeople() {
		fmt.Fprintln(t.Stderr, printable(fmt.Sprintf(text, args...)))
	}
}

func encodeJSON(value any, oneLine bool) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if !oneLine {
		enc.SetIndent("", "  ")
	}
	err := enc.Encode(value)
	return b.String(), err
}

// encodeYAML encodes value as JSON first, so that both formats have the same fields in the same order. JSON is
// valid YAML; only its style is changed.
func encodeYAML(value any) (string, error) {
	text, err := encodeJSON(value, false)
	if err != nil {
		return "", err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(escapeForYAML(text)), &doc); err != nil {
		return "", err
	}
	plain(&doc)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err = errors.Join(enc.Encode(&doc), enc.Close())
	return b.String(), err
}

// escapeForYAML escapes characters that JSON allows and YAML does not.
func escapeForYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), `"`))
		}
	}
	return b.String()
}

func plain(n *yaml.Node) {
	n.Style = 0
	if len(n.Content) == 0 && n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle // [] and {}
	}
	for _, inner := range n.Content {
		plain(inner)
	}
}

// cell returns text as a table cell: on one line, and "-" if it is empty.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return printable(strings.ReplaceAll(text, "\n", string(unicode.ReplacementChar)))
}

// printable makes text safe to show. Nodes choose their own hostnames and servers their responses, and a
// terminal would interpret control characters in them.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func timeText(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func optionalTimeText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return timeText(*at)
}
