package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// tailnetReport is the output of an import from Tailscale or of its check.
type tailnetReport struct {
	tailnetPlan
	Files          []string                  `json:"files"`
	PolicyProblems []apiclient.PolicyProblem `json:"policyProblems"`
	// Notes say what was not imported because the server already has it, or refused it.
	Notes   []string `json:"notes"`
	Applied bool     `json:"applied"`
	// Created counts the users and reservations that did not exist yet.
	Created int `json:"created"`
}

func (t *tool) importTailscale() *cobra.Command {
	var check, apply bool
	cmd := &cobra.Command{
		Use:   "tailscale <directory>",
		Short: "Import users, the policy, DNS settings and names from Tailscale",
		Long: `Import users, the policy and DNS settings from Tailscale, and reserve the names
and addresses of its devices. Devices must sign in once: the command prints what
to run on each of them. A device gets its former name and addresses when it
signs in with the same hostname, for the same user or with the same tags.

The directory contains responses of Tailscale's API: devices.json, and if you
want to import them, users.json, policy.hujson, nameservers.json,
searchpaths.json, split-dns.json and preferences.json.

--check shows what would be imported and changes nothing. --apply imports into
the running server. You can repeat it: what exists is not changed.`,
		Example: `  fairlead import tailscale ./tailnet --check
  fairlead import tailscale ./tailnet --apply`,
		Args: takes("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check == apply {
				return wrongUsage("use one of --check and --apply")
			}
			net, err := readTailnet(args[0])
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			state, err := decode[apiclient.ServerState](answer(client.ShowServer(cmd.Context())))
			if err != nil {
				return err
			}
			r := tailnetReport{tailnetPlan: net.plan(state.URL), Files: net.files, PolicyProblems: []apiclient.PolicyProblem{}, Notes: []string{}, Applied: apply}
			if net.policy != "" {
				_, problems := lang.Parse([]byte(net.policy))
				r.PolicyProblems = problemShapes(problems)
			}
			if apply {
				err = (&tailnetImport{t, client, net, &r}).run(cmd.Context())
			}
			return errors.Join(t.show(r, tailnetText(r)), err)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "show what would be imported")
	cmd.Flags().BoolVar(&apply, "apply", false, "import")
	return cmd
}

// tailnetImport applies a plan to a running server.
type tailnetImport struct {
	*tool
	client *apiclient.Client
	net    *tailnet
	report *tailnetReport
}

// run creates the users first, because the policy and the reservations name them.
func (i *tailnetImport) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{i.users, i.policy, i.dns, i.devices} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w; fix this and run the command again: it continues where it stopped", err)
		}
	}
	return nil
}

func (i *tailnetImport) note(text string, args ...any) {
	i.report.Notes = append(i.report.Notes, fmt.Sprintf(text, args...))
}

func (i *tailnetImport) users(ctx context.Context) error {
	list, err := decode[apiclient.UserList](answer(i.client.ListUsers(ctx, &apiclient.ListUsersParams{})))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, u := range list.Users {
		have[strings.ToLower(u.Name)] = true
	}
	for n, u := range i.report.Users {
		if have[strings.ToLower(u.Name)] {
			continue
		}
		body, err := answer(i.client.CreateUser(ctx, apiclient.UserCreation{Name: u.Name, Email: ifSet(u.Email), DisplayName: ifSet(u.DisplayName)}))
		if _, err := decode[apiclient.UserResult](body, err); err != nil {
			return fmt.Errorf("user %s: %w", u.login, err)
		}
		i.report.Created++
		i.progress("users", n+1, len(i.report.Users))
	}
	return nil
}

func (i *tailnetImport) progress(what string, done, of int) {
	if done%500 == 0 {
		i.tool.note("%d of %d %s", done, of, what)
	}
}

// policy saves the policy, unless the server has one.
func (i *tailnetImport) policy(ctx context.Context) error {
	if i.net.policy == "" {
		return nil
	}
	if len(i.report.PolicyProblems) > 0 {
		i.note("the policy was not saved: fix its problems, then run fairlead policy set")
		return nil
	}
	current, err := decode[apiclient.Policy](answer(i.client.GetPolicy(ctx)))
	switch {
	case err == nil && current.Policy == i.net.policy:
		return nil
	case err == nil && current.Policy != "":
		i.note("the server already has a policy, which was kept; to replace it, run fairlead policy set")
		return nil
	}
	body, err := answer(i.client.SetPolicy(ctx, nil, apiclient.PolicyDraft{Policy: &i.net.policy}))
	if _, err := decode[apiclient.Policy](i.withPlaces("policy.hujson")(body, err)); err != nil {
		i.note("the policy was not saved: %v; fix it, then run fairlead policy set", err)
	}
	return nil
}

func (i *tailnetImport) dns(ctx context.Context) error {
	dns := i.net.dns
	if !dns.found {
		return nil
	}
	change := apiclient.DNSChange{MagicDNS: dns.magic}
	if len(dns.nameservers) > 0 {
		change.Nameservers = &dns.nameservers
	}
	if len(dns.search) > 0 {
		change.SearchDomains = &dns.search
	}
	if len(dns.split) > 0 {
		change.Split = &dns.split
	}
	if _, err := decode[apiclient.DNS](answer(i.client.ChangeDNS(ctx, nil, change))); err != nil {
		i.note("the DNS settings were not changed: %v", err)
	}
	return nil
}

// devices reserves names and addresses, except those that are reserved already or that a node has.
func (i *tailnetImport) devices(ctx context.Context) error {
	list, err := decode[apiclient.ReservationList](answer(i.client.ListReservations(ctx, &apiclient.ListReservationsParams{})))
	if err != nil {
		return err
	}
	nodes, err := decode[apiclient.NodeList](answer(i.client.ListNodes(ctx, &apiclient.ListNodesParams{})))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, r := range list.Reservations {
		have[r.Name] = true
	}
	for _, n := range nodes.Nodes {
		have[n.GivenName] = true
	}
	for n, d := range i.report.Devices {
		if have[d.Name] {
			continue
		}
		body, err := answer(i.client.CreateReservation(ctx, apiclient.ReservationCreation{
			Name: d.Name, Hostname: ifSet(d.Hostname), User: ifSet(d.User), Tags: d.Tags, Ipv4: ifSet(d.IPv4), Ipv6: ifSet(d.IPv6),
		}))
		if _, err := decode[apiclient.ReservationResult](body, err); err != nil {
			i.note("device %s: %v", d.Name, err)
			continue
		}
		i.report.Created++
		i.progress("devices", n+1, len(i.report.Devices))
	}
	return nil
}

func tailnetText(r tailnetReport) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Tailscale (%s): %s, %s\n", strings.Join(r.Files, ", "), count(len(r.Users), "user"), count(len(r.Devices), "device"))
	problems := make([]string, len(r.PolicyProblems))
	for i, p := range r.PolicyProblems {
		problems[i] = placeOf("policy.hujson", p) + ": " + p.Text
	}
	var commands []string
	for _, d := range r.Devices {
		commands = append(commands, fmt.Sprintf("%-20s %s", d.Name, d.Command))
	}
	slices.Sort(commands)
	var admins []string
	for _, a := range r.Admins {
		admins = append(admins, a+": assign a role with fairlead users set-role")
	}
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Left out", r.LeftOut},
		{"Problems of the policy", problems},
		{"Roles, which are not imported", admins},
		{"Not imported", r.Notes},
		{"Run on each device", commands},
	} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&text, "%s:\n", part.title)
		}
		for _, line := range part.lines {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	switch {
	case r.Applied:
		fmt.Fprintf(&text, "Imported: %s created\n", count(r.Created, "object"))
	default:
		text.WriteString("Ready to import with --apply\n")
	}
	return text.String()
}
