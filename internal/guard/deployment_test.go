package guard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/internal/guard"
)

// Every deployment that we ship lets 5,000 nodes behind one address reconnect at
// once, within the memory and the file descriptors that it gives the server.
func TestShippedDeploymentsAdmitManyNodesOfOneNetwork(t *testing.T) {
	const nodes, perNetwork, unlimited = 5000, 6000, 1 << 20
	var compose struct {
		Services struct {
			Fairlead struct {
				MemLimit    string `yaml:"mem_limit"`
				Environment map[string]string
			}
		}
	}
	read(t, "compose/base.yaml", &compose)
	server := compose.Services.Fairlead
	var chart struct {
		TLS struct {
			ExistingSecret string `yaml:"existingSecret"`
		}
		Resources struct{ Limits struct{ Memory string } }
	}
	read(t, "helm/fairlead/values.yaml", &chart)
	unit := string(shipped(t, "fairlead.service"))
	files := regexp.MustCompile(`(?m)^LimitNOFILE=(\d+)$`).FindStringSubmatch(unit)
	if files == nil || regexp.MustCompile(`(?m)^Memory(Max|High)`).MatchString(unit) {
		t.Fatal("this test reads LimitNOFILE of the unit, and no memory limit")
	}
	ofUnit, _ := strconv.Atoi(files[1])

	for name, c := range map[string]struct {
		files   int
		memory  int64
		withTLS bool
	}{
		"Compose":                      {unlimited, min(size(t, server.MemLimit), size(t, server.Environment["GOMEMLIMIT"])), false},
		"chart":                        {unlimited, size(t, chart.Resources.Limits.Memory), chart.TLS.ExistingSecret != ""},
		"package, machine of 512 MB":   {ofUnit, 512 << 20, false},
		"package, TLS, machine of 1 G": {ofUnit, 1 << 30, true},
	} {
		_, unproven := guard.Limits(c.files, c.memory, c.withTLS)
		if got := guard.PerNetwork(perNetwork, unproven); got < nodes {
			t.Errorf("%s, with %d bytes: %d connections of one network, %d in all; want at least %d", name, c.memory, got, unproven, nodes)
		}
	}
}

func shipped(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(shipped(t, name), into); err != nil {
		t.Fatal(err)
	}
}

// size parses an amount of memory in the notation of Compose, Kubernetes or Go.
func size(t *testing.T, text string) int64 {
	t.Helper()
	digits := strings.TrimRight(text, "mMiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits == text {
		t.Fatalf("%q is not an amount in MiB", text)
	}
	return n << 20
}
