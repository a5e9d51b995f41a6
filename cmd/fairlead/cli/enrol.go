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
		Short: "Register a node before its first boot",
		Long: `Register a node before its first boot, for provisioning systems that generate
its keys and write them to its disk. The pre-auth key is the credential; no API
key is needed. Running devices join with tailscale up instead.

Only the public machine key and node key are sent. Repeating the same call
returns the existing node.`,
		Example: `  fairlead nodes enrol web --auth-key - --machine-key "$M" --node-key "$N" <key
  fairlead nodes enrol build-07 --auth-key "$KEY" --os linux --arch arm64 \
    --machine-key mkey:5b1c8a0d… --node-key nodekey:0f1e2d3c…`,
		Args:              takes("hostname"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"auth-key", "machine-key", "node-key"} {
				if !cmd.Flags().Changed(flag) {
					return wrongUsage("missing flag --%s", flag)
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
				return fmt.Sprintf("Registered node %s (ID %s) with %s\n", n.GivenName, n.ID, strings.Join(n.IPAddresses, ", "))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&key, "auth-key", "", "pre-auth `key`; - reads it from standard input, which hides it from other users of this machine")
	flags.StringVar(&machine, "machine-key", "", "public machine `key` of the node")
	flags.StringVar(&node, "node-key", "", "public node `key` of the node")
	flags.StringVar(&system, "os", "", "operating `system`, such as linux")
	flags.StringVar(&arch, "arch", "", "`architecture`, such as arm64")
	flags.StringVar(&version, "client-version", "", "client `version`")
	flags.StringSliceVar(&tags, "tags", nil, "`tag:name` to request; repeat the flag or separate several with commas")
	flags.StringSliceVar(&routes, "routes", nil, "`prefixes` to advertise; repeat the flag or separate several with commas")
	for _, flag := range []string{"auth-key", "machine-key", "node-key", "os", "arch", "client-version", "tags", "routes"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}
