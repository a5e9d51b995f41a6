package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// changeKinds are the kinds of things that change.
func changeKinds() []string {
	return []string{"user", "node", "preauthkey", "apikey", "login", "sshgrant", "policy", "dns", "webhook", "clock"}
}

// completeEvents completes with what a webhook can be told of.
func completeEvents() cobra.CompletionFunc {
	names := []string{"node.online", "node.offline"}
	for _, kind := range changeKinds() {
		names = append(names, kind+".*", kind+".created", kind+".changed", kind+".deleted")
	}
	return completeEach(names)
}

// completeScopes completes with what a key can be narrowed to.
func completeScopes() cobra.CompletionFunc {
	var scopes []string
	for _, noun := range []string{"users", "preauthkeys", "apikeys", "nodes", "routes", "logins", "ssh", "dns", "policy", "history", "webhooks", "service"} {
		scopes = append(scopes, noun, noun+":read")
	}
	return completeEach(scopes)
}

// completeEach completes the last of several words, with commas between.
func completeEach(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		for _, word := range words {
			found = append(found, before+word)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// describePlainly takes the marks for help out of what describes the flags: a shell
// shows it as it is.
func describePlainly(root *cobra.Command) {
	eachCommand(root, func(cmd *cobra.Command) {
		for _, name := range flagNames(cmd) {
			if flag := cmd.Flag(name); flag != nil {
				flag.Usage = strings.ReplaceAll(flag.Usage, "`", "")
			}
		}
	})
}

// completeTags completes the last of several tags, with commas between, by those
// that nodes and pre-auth keys have.
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

// completePreAuthKeys is the same for pre-auth keys.
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
	return "until " + end
}
