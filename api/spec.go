package apispec

import _ "embed"

//go:generate ../.bin/oapi-codegen -config models.codegen.yaml openapi.yaml
//go:generate ../.bin/oapi-codegen -config client.codegen.yaml openapi.yaml
//go:generate ../.bin/oapi-codegen -config server.codegen.yaml openapi.yaml
//go:generate go run ./gen

// Document is openapi.yaml as the server delivers it.
//
//go:embed openapi.yaml
var Document []byte
