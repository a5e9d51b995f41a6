// Command composecheck reads the deployment in the current directory as Compose v2 does, using .env
// and COMPOSE_FILE, and prints its services. Tests compare them with those of docker-compose 1.29,
// so that Compose v2 itself does not have to be installed.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	services, err := read(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "composecheck:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(services, "\n"))
}

// read takes the same steps, in the same order, as `docker compose config`.
func read(ctx context.Context) ([]string, error) {
	options, err := cli.NewProjectOptions(nil,
		cli.WithOsEnv,
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithConfigFileEnv,
		cli.WithDefaultConfigPath,
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithDefaultProfiles(),
	)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	return project.ServiceNames(), nil
}
