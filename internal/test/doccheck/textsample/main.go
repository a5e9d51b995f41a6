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
	docs := flag.Bool("docs", false, "draw 100 sentences from README.md and docs, or from the documents that the arguments name")
	flag.Parse()
	if err := run(*seed, *comments, *docs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "textsample:", err)
		os.Exit(1)
	}
}

func run(seed string, comments, docs bool, only []string) error {
	if seed == "" {
		return errors.New("missing -seed: use a commit hash")
	}
	all, err := doccheck.Collect(os.DirFS("."))
	if err != nil {
		return err
	}
	sections := all.Sample(seed, comments)
	if docs {
		sections = all.SampleDocuments(seed, only)
	}
	_, err = os.Stdout.WriteString(doccheck.Markdown(seed, sections))
	return err
}
