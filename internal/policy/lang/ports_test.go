package lang_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func TestWordsForPortsAreBounded(t *testing.T) {
	var s lang.Service
	for port := uint16(1); port < 60_000; port += 2 {
		s.Ports = append(s.Ports, lang.PortRange{First: port, Last: port})
	}
	text := s.String()
	if len(text) > 2000 || !strings.HasPrefix(text, "ports 1, 3, 5, ") || !strings.HasSuffix(text, ", 399, and more") {
		t.Errorf("30,000 ports are told in %d bytes, that end in %q", len(text), text[max(0, len(text)-20):])
	}
}
