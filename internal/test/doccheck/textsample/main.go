// Command textsample prints texts that are drawn at random from the repository, for a review of the language.
// The same seed and the same tree give the same texts. It runs in the root of the repository: make text-sample.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/fairlead-mesh/fairlead/internal/test/doccheck"
)

func main() {
	seed := flag.String("seed", "", "commit `hash` that selects the texts")
	comments := flag.Bool("comments", false, "also draw code comments")
	flag.Parse()
	if err := run(*seed, *comments); err != nil {
		fmt.Fprintln(os.Stderr, "textsample:", err)
		os.Exit(1)
	}
}

func run(seed string, comments bool) error {
	if seed == "" {
		return errors.New("missing -seed: use a commit hash")
	}
	all, err := doccheck.Collect(os.DirFS("."))
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(doccheck.Markdown(seed, all.Sample(seed, comments)))
	return err
}
