package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) nodesEnrol() *cobra.Command {
	var key, machine, node, system, arch, version string
	var tags, routes []string
	cmd := &cobra.Command{
		Use:   "enrol <hostname>",
		Short: "Enrol a node before its first boot",
		Long: `Enrol a node before its first boot, for those who make its keys and write them
onto its disk. The pre-auth key is the credential: no API key is needed. Devices
that run join by themselves, with tailscale up.

Only the public machine key and node key are sent. The same call again is
answered with the node that exists.`,
		Example: `  fairlead nodes enrol web --auth-key - --machine-key "$M" --node-key "$N" <key
  fairlead nodes enrol build-07 --auth-key "$KEY" --os linux --arch arm64 \
    --machine-key mkey:5b1c8a0d… --node-key nodekey:0f1e2d3c…`,
		Args:              takes("hostname"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"auth-key", "machine-key", "node-key"} {
				if !cmd.Flags().Changed(flag) {
					return wrongUsage("--%s is missing", flag)
				}
			}
			if key == "-" {
				text, err := io.ReadAll(io.LimitReader(t.Stdin, 4096))
				if err != nil {
					return err
				}
				key = strings.TrimSpace(string(text))
			}
			return t.showNode(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.EnrolMachine(cmd.Context(), apiclient.MachineEnrolment{
					PreAuthKey: key, MachineKey: machine, NodeKey: node, Hostname: args[0], OS: ifSet(system), Arch: ifSet(arch),
					ClientVersion: ifSet(version), Tags: tags, RoutableIPs: routes,
				}))
			}, func(n apiclient.Node) string {
				return fmt.Sprintf("Node %s with id %s has %s\n", n.GivenName, n.ID, strings.Join(n.IPAddresses, ", "))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&key, "auth-key", "", "pre-auth `key`, or - to read it from standard input, which hides it from other users")
	flags.StringVar(&machine, "machine-key", "", "public machine `key` of the node")
	flags.StringVar(&node, "node-key", "", "public node `key` of the node")
	flags.StringVar(&system, "os", "", "operating `system`, such as linux")
	flags.StringVar(&arch, "arch", "", "`architecture`, such as arm64")
	flags.StringVar(&version, "client-version", "", "`version` of the client")
	flags.StringSliceVar(&tags, "tags", nil, "`tag:name` that the node asks for; repeat the flag or put commas between several")
	flags.StringSliceVar(&routes, "routes", nil, "`prefixes` that the node offers")
	for _, flag := range []string{"auth-key", "machine-key", "node-key", "os", "arch", "client-version", "tags", "routes"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}
