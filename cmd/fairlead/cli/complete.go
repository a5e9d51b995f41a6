package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// changeKinds returns the kinds of objects that events are about.
func changeKinds() []string {
	return []string{"user", "node", "preauthkey", "apikey", "session", "login", "passkey", "invitation", "sshgrant", "policy", "dns", "webhook", "relay", "reservation", "clock", "noisekey"}
}

// completeEvents completes with the events that a webhook can receive.
func completeEvents() cobra.CompletionFunc {
	names := []string{"node.online", "node.offline"}
	for _, kind := range changeKinds() {
		names = append(names, kind+".*", kind+".created", kind+".changed", kind+".deleted")
	}
	return completeEach(names)
}

// completeScopes completes with the scopes of API keys.
func completeScopes() cobra.CompletionFunc {
	var scopes []string
	for _, noun := range []string{"users", "preauthkeys", "apikeys", "nodes", "routes", "logins", "ssh", "dns", "policy", "history", "webhooks", "service", "scim"} {
		scopes = append(scopes, noun, noun+":read")
	}
	return completeEach(scopes)
}

// completeEach completes the last of several comma-separated words.
func completeEach(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		for _, word := range words {
			found = append(found, before+word)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// describePlainly removes the markup for help from the descriptions of flags, because shells show them
// verbatim.
func describePlainly(root *cobra.Command) {
	eachCommand(root, func(cmd *cobra.Command) {
		for _, name := range flagNames(cmd) {
			if flag := cmd.Flag(name); flag != nil {
				flag.Usage = strings.ReplaceAll(flag.Usage, "`", "")
			}
		}
	})
}

// completeTags completes the last of several comma-separated tags with those of nodes and pre-auth keys.
func (t *tool) completeTags(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	tags := map[string]bool{}
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		nodes, _ := decode[apiclient.NodeList](answer(client.ListNodes(ctx, nil)))
		for _, n := range nodes.Nodes {
			for _, tag := range n.Tags {
				tags[before+tag] = true
			}
		}
		keys, _ := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(ctx, nil)))
		for _, k := range keys.PreAuthKeys {
			for _, tag := range k.ACLTags {
				tags[before+tag] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(tags)), cobra.ShellCompDirectiveNoFileComp
}

// completeAPIKeys completes one argument, or a flag, with the ids of API keys.
func (t *tool) completeAPIKeys(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.APIKeyList](answer(client.ListAPIKeys(ctx, nil)))
			for _, k := range list.APIKeys {
				ids = append(ids, keyID(k.Prefix)+"\t"+keyLife(k.Expired, timeText(k.Expiration)))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completePreAuthKeys completes one argument, or a flag, with the ids of pre-auth keys.
func (t *tool) completePreAuthKeys(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(ctx, nil)))
			for _, k := range list.PreAuthKeys {
				ids = append(ids, keyID(k.Key)+"\t"+cell(strings.TrimSpace(userName(k.User)+" "+keyLife(k.Expired, timeText(k.Expiration)))))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func keyLife(expired bool, end string) string {
	if expired {
		return "expired " + end
	}
	return "expires " + end
}
