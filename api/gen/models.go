package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
)

// modelsFile is where oapi-codegen writes the types of requests and responses.
const modelsFile = "../apiclient/models.gen.go"

// modelAliases returns a file that makes the client's models available in the server's package. If they were
// generated twice, they could differ, and the largest part of the generated code would double.
func modelAliases(models []byte) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), modelsFile, models, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	types, constants := &bytes.Buffer{}, &bytes.Buffer{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				fmt.Fprintf(types, "%s = apiclient.%[1]s\n", spec.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					fmt.Fprintf(constants, "%s = apiclient.%[1]s\n", name)
				}
			}
		}
	}
	return fmt.Sprintf("package openapi\n\nimport %q\n\n// The models of the client.\ntype (\n%s)\n\n// Their values.\nconst (\n%s)\n",
		"github.com/fairlead-mesh/fairlead/apiclient", types, constants), nil
}
