package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	healthLimit  = 5 * time.Second
	versionLimit = 2 * time.Second
)

func (t *tool) health() *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether the server is healthy",
		Long: `Check whether the server is healthy. The exit status is 0 if it is, and 1 if it
is not or does not respond within 5 seconds. No API key is needed.

With --ready, check whether the server can serve devices. It can do so even
while its database is down and the server is unhealthy.`,
		Example: `  fairlead health
  fairlead health --ready
  fairlead health --server https://mesh.example.com`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			ctx, cancel := context.WithTimeout(ctx, healthLimit)
			defer cancel()
			ask, state := client.Health, "healthy"
			if ready {
				ask, state = func(ctx context.Context, edit ...apiclient.RequestEditorFn) (*http.Response, error) {
					return client.Ready(ctx, nil, edit...)
				}, "ready"
			}
			health, err := decodeHealth(answer(ask(ctx)))
			if err != nil {
				return err
			}
			if health.Status != apiclient.HealthStatusPass {
				reasons := strings.Join(findings(health), ", ")
				if reasons == "" {
					reasons = "no reason given"
				}
				return fmt.Errorf("the server is not %s: %s; see its log", state, reasons)
			}
			return t.show(health, strings.Join(append([]string{"pass"}, findings(health)...), "\n")+"\n")
		}),
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "check whether the server can serve devices")
	return cmd
}

func (t *tool) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the status of the server and its components",
		Long: `Show the status of each component of the server and when it last changed, the
relay latencies that online nodes report, and all replicas.`,
		Example: `  fairlead status
  fairlead status --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			state, err := decode[apiclient.ServerState](answer(client.ShowServer(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "PART, STATE, SINCE, DETAILS", spare: "SINCE"}
			return showTable(t, state, shown, stateRows(state), func(row []string) []string { return row })
		}),
	}
}

// stateRows returns the lines of the status command.
func stateRows(s apiclient.ServerState) [][]string {
	rows := [][]string{{"server", s.Version.ProductVersion, timeText(s.StartedAt), fmt.Sprintf("replica %s at %s, database %s", s.Replica, s.URL, s.Database)}}
	for _, c := range s.Checks {
		rows = append(rows, []string{c.Part, string(c.Status), timeText(c.Since), strings.Join(c.Output, "; ")})
	}
	for _, r := range s.Relays {
		state, text := "not measured", r.Region.Name
		if r.MedianMilliseconds != nil {
			state = "measured by " + count(r.Measured, "node")
			text = fmt.Sprintf("%s, home relay of %s, median latency %.1f ms", r.Region.Name, count(r.Homes, "node"), *r.MedianMilliseconds)
		}
		rows = append(rows, []string{fmt.Sprintf("relay %d %s", r.Region.ID, r.Region.Code), state, "", text})
	}
	for _, r := range s.Replicas {
		age := time.Duration(r.AgeMillis) * time.Millisecond
		details := fmt.Sprintf("%s, revision %s, last seen %v ago", count(r.Nodes, "node"), r.Revision, age)
		if r.Draining {
			details = "draining, " + details
		}
		rows = append(rows, []string{"replica " + r.ID, r.Version, "", details})
	}
	return rows
}

// decodeHealth decodes the response of the health check, which has a body even if it reports a failure.
func decodeHealth(body []byte, err error) (apiclient.Health, error) {
	var health apiclient.Health
	if json.Unmarshal(body, &health) == nil && health.Status == apiclient.HealthStatusFail {
		return health, nil
	}
	return decode[apiclient.Health](body, err)
}

// findings lists the checks that did not pass, one line each.
func findings(health apiclient.Health) []string {
	var lines []string
	for _, part := range slices.Sorted(maps.Keys(health.Checks)) {
		for _, check := range health.Checks[part] {
			if check.Status != apiclient.HealthCheckStatusPass {
				lines = append(lines, cell(fmt.Sprintf("%s %s: %s", part, check.Status, check.Output)))
			}
		}
	}
	return lines
}

// versions is the output of the version command.
type versions struct {
	Client binaryVersion  `json:"client"`
	Server *binaryVersion `json:"server"` // nil if the server does not respond
}

type binaryVersion struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	BuildTime string `json:"buildTime"`
	Go        string `json:"go"`
}

func (t *tool) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this binary and the server",
		Long: `Print the version of this binary, and of the server if it responds. No API key
is needed.`,
		Example: `  fairlead version
  fairlead version --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			all := versions{Client: binaryVersion{t.Build.Version, t.Build.Commit, t.Build.Time, runtime.Version()}}
			ctx, cancel := context.WithTimeout(ctx, versionLimit)
			defer cancel()
			if v, err := decode[apiclient.Version](answer(client.Version(ctx))); err == nil {
				all.Server = &binaryVersion{v.ProductVersion, v.Commit, v.BuildTime, v.Go.Version}
			}
			shown := columns{names: "PART, VERSION, COMMIT, BUILT, GO", spare: "GO, BUILT, COMMIT"}
			return showTable(t, all, shown, []string{"client", "server"}, func(part string) []string {
				v := &all.Client
				if part == "server" {
					v = all.Server
				}
				if v == nil {
					return []string{part, "no response", "", "", ""}
				}
				return []string{part, v.Version, v.Commit, v.BuildTime, v.Go}
			})
		}),
	}
}

func (t *tool) openapi() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI document of the server",
		Long: `Print the OpenAPI 3.0 document of the server's API in YAML, or in JSON with
--output json. No API key is needed. The server also shows it as an HTML page
at /api/v1/docs.`,
		Example: `  fairlead openapi > openapi.yaml
  fairlead openapi --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			text, err := get(ctx, client, "api/v1/openapi.yaml")
			if err != nil {
				return err
			}
			var document any
			if err := yaml.Unmarshal(text, &document); err != nil {
				return fmt.Errorf("cannot parse the response of the server: %w; compare the versions with: fairlead version", err)
			}
			if t.format == formatYAML {
				return t.write(string(text))
			}
			return t.showText(document, string(text))
		}),
	}
}

// get requests a path for which the generated client has no method.
func get(ctx context.Context, client *apiclient.Client, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, client.Server+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, edit := range client.RequestEditors {
		if err := edit(ctx, req); err != nil {
			return nil, err
		}
	}
	return answer(client.Client.Do(req))
}

func (t *tool) debug() *cobra.Command {
	return group(&cobra.Command{
		Use:   "debug",
		Short: "Diagnose a running server",
		Example: `  fairlead debug digest
  fairlead debug bundle`,
	}, t.debugDigest(), t.debugBundle())
}

func (t *tool) debugDigest() *cobra.Command {
	return &cobra.Command{
		Use:   "digest",
		Short: "Compare the state of all replicas",
		Long: `Print a digest of the state of the replica that responds, and the digest that
each live replica last reported.

Only digests of the same revision can be compared. If two of them differ, the
exit status is 1. A few seconds after the last change, every replica reports its
newest revision. While changes continue, it reports only every 1024th.`,
		Example: `  fairlead debug digest
  fairlead debug digest --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			digest, err := decode[apiclient.Digest](answer(client.DebugDigest(ctx)))
			if err != nil {
				return err
			}
			rows := [][]string{{digest.Replica + " (now)", "", digest.Revision, digest.Revision, digest.Digest, ""}}
			for _, r := range digest.Replicas {
				age := time.Duration(r.AgeMillis) * time.Millisecond
				rows = append(rows, []string{r.ID, r.Version, r.Revision, r.DigestRevision, r.Digest, age.String()})
			}
			shown := columns{names: "REPLICA, VERSION, REVISION, AT REVISION, DIGEST, AGE", spare: "DIGEST, VERSION"}
			if err := showTable(t, digest, shown, rows, func(row []string) []string { return row }); err != nil {
				return err
			}
			t.note("%s", compared(digest))
			return compareDigests(digest)
		}),
	}
}

// compared returns a sentence with the revision for which most replicas reported a digest, and how many
// did.
func compared(d apiclient.Digest) string {
	all, most, revision := map[string]bool{d.Replica: true}, 1, d.Revision
	at := map[string]map[string]bool{d.Revision: {d.Replica: true}}
	for _, r := range d.Replicas {
		all[r.ID] = true
		if r.Digest == "" { // it has just started and was never idle
			continue
		}
		if at[r.DigestRevision] == nil {
			at[r.DigestRevision] = map[string]bool{}
		}
		at[r.DigestRevision][r.ID] = true
		if n := len(at[r.DigestRevision]); n > most {
			most, revision = n, r.DigestRevision
		}
	}
	return fmt.Sprintf("Compared %d of %s, at revision %s", most, count(len(all), "replica"), revision)
}

// compareDigests fails if two replicas report different digests of the same revision.
func compareDigests(d apiclient.Digest) error {
	seen := map[string]string{d.Revision: d.Digest}
	for _, r := range d.Replicas {
		if r.Digest == "" {
			continue
		}
		if digest, ok := seen[r.DigestRevision]; ok && digest != r.Digest {
			return errors.New("replicas differ at revision " + r.DigestRevision + "; restart the faulty replica and report this as a bug")
		}
		seen[r.DigestRevision] = r.Digest
	}
	return nil
}
