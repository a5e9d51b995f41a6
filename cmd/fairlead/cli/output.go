package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// format is the flag that chooses the form of the output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "form" }

func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
		*f = format(s)
		return nil
	default:
		return errors.New("choose table, json or yaml")
	}
}

// show prints value as the API has it, or text when people read it.
func (t *tool) show(value any, text string) error {
	switch t.format {
	case formatJSON:
		encoded, err := encodeJSON(value)
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
	case formatTable:
		text = printable(text)
	}
	_, err := io.WriteString(t.Stdout, text)
	return err
}

// note tells a person what a script need not know.
func (t *tool) note(text string, args ...any) {
	if t.format == formatTable {
		fmt.Fprintln(t.Stderr, printable(fmt.Sprintf(text, args...)))
	}
}

func encodeJSON(value any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return b.String(), err
}

// encodeYAML goes by way of JSON, so that both have the same members in the
// same order. JSON is YAML; only its style is changed.
func encodeYAML(value any) (string, error) {
	text, err := encodeJSON(value)
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

// escapeForYAML writes as escapes what JSON takes as it is and YAML does not.
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

// table lays items out in columns, one line each under the header.
func table[T any](header string, items []T, cells func(T) []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, ", ", "\t"))
	for _, item := range items {
		row := cells(item)
		for i, text := range row {
			row[i] = cell(text)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() // into memory, cannot fail
	return b.String()
}

// cell is text for a table.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return printable(strings.ReplaceAll(text, "\n", string(unicode.ReplacementChar)))
}

// printable makes text safe to show: nodes choose their own hostnames, servers
// what they answer, and a terminal would obey control characters in it.
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
