// Command gen generates the Go code that oapi-codegen does not: the operation tables of the server and of the
// console from openapi.yaml, and aliases for the client's models in the server. It runs in the directory of
// openapi.yaml, as part of "go generate ./api".
//
// It fails if an operation lacks an attribute that the comment at the top of openapi.yaml describes, or has
// an unknown one.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := write("openapi.yaml"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(document string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	models, err := os.ReadFile(modelsFile)
	if err != nil {
		return err
	}
	files, err := generate(text, models)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	for name, code := range files {
		if err := os.WriteFile(name, code, 0o644); err != nil { //nolint:gosec // source code is not secret
			return err
		}
	}
	return nil
}
