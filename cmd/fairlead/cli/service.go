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
		Short: "Say whether the server is healthy",
		Long: `Say whether the server is healthy. Exit status 0 if it is, 1 if it is not or
does not answer within 5 seconds. No key is needed.

With --ready, say whether the server can serve maps to devices. It can do so
even while its database is down and it is not healthy.`,
		Example: `  fairlead health
  fairlead health --ready
  fairlead health --server https://mesh.example.com`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			ctx, cancel := context.WithTimeout(ctx, healthLimit)
			defer cancel()
			ask, state := client.Health, "healthy"
			if ready {
				ask, state = client.Ready, "ready"
			}
			health, err := decodeHealth(answer(ask(ctx)))
			if err != nil {
				return err
			}
			if health.Status != apiclient.HealthStatusPass {
				reasons := strings.Join(findings(health), ", ")
				if reasons == "" {
					reasons = "it does not say why"
				}
				return fmt.Errorf("the server is not %s: %s; look at its log", state, reasons)
			}
			return t.show(health, strings.Join(append([]string{"pass"}, findings(health)...), "\n")+"\n")
		}),
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "check whether the server can serve maps to devices")
	return cmd
}

func (t *tool) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how well each part of the service is, and since when",
		Long: `Show how well each part of the service is and since when, what online nodes
report of the relays, and which replicas there are.`,
		Example: `  fairlead status
  fairlead status --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			state, err := decode[apiclient.ServerState](answer(client.ShowServer(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "PART, STATE, SINCE, SAYS", spare: "SINCE"}
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
		says := "no online node has measured it"
		if r.MedianMilliseconds != nil {
			says = fmt.Sprintf("%s, home of %s, %.1f ms in the middle", r.Region.Name, count(r.Homes, "node"), *r.MedianMilliseconds)
		}
		rows = append(rows, []string{fmt.Sprintf("relay %d %s", r.Region.ID, r.Region.Code), fmt.Sprintf("%d measured", r.Measured), "", says})
	}
	for _, r := range s.Replicas {
		age := time.Duration(r.AgeMillis) * time.Millisecond
		rows = append(rows, []string{"replica " + r.ID, r.Version, "", fmt.Sprintf("%s, revision %s, heard %v ago", count(r.Nodes, "node"), r.Revision, age)})
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

// findings lists the failed checks, one line each.
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
	Server *binaryVersion `json:"server"` // nil when it does not answer
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
		Short: "Print the version of this binary and of the server",
		Long:  "Print the version of this binary and, if it answers, of the server. No key is\nneeded.",
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
					return []string{part, "no answer", "", "", ""}
				}
				return []string{part, v.Version, v.Commit, v.BuildTime, v.Go}
			})
		}),
	}
}

func (t *tool) openapi() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the document of the server's API",
		Long: `Print the document of the server's API, OpenAPI 3.0 in YAML, or in JSON with
--output json. No key is needed. People read it at /api/v1/docs of the server.`,
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
				return fmt.Errorf("the answer is not understood: %w; compare the versions with fairlead version", err)
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
		Short: "Look into a running server",
		Example: `  fairlead debug digest
  fairlead debug bundle`,
	}, t.debugDigest(), t.debugBundle())
}

func (t *tool) debugDigest() *cobra.Command {
	return &cobra.Command{
		Use:   "digest",
		Short: "Compare the state of all replicas",
		Long: `Print the digest of the answering replica's state, then what every live replica
last reported.

Only digests at the same revision can be compared, and must be the same; if two
differ the exit status is 1. A few seconds after the last change every replica
reports its newest revision; under steady change, every 1024th.`,
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

// compared says for which revision most replicas reported a digest, and how many did.
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

// compareDigests fails if two replicas disagree about a revision.
func compareDigests(d apiclient.Digest) error {
	seen := map[string]string{d.Revision: d.Digest}
	for _, r := range d.Replicas {
		if r.Digest == "" {
			continue
		}
		if digest, ok := seen[r.DigestRevision]; ok && digest != r.Digest {
			return errors.New("replicas differ at revision " + r.DigestRevision + "; restart the wrong one and report this")
		}
		seen[r.DigestRevision] = r.Digest
	}
	return nil
}
