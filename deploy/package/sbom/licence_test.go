package main

import (
	"os"
	"testing"
)

func TestLicencesAreIdentified(t *testing.T) {
	for text, want := range map[string]string{
		"                                 Apache License\n                           Version 2.0, January 2004": "Apache-2.0",
		"Permission is hereby granted, free of charge, to any person obtaining\na copy of this software":        "MIT",
		"  * Redistributions of source code must retain the above copyright\nnotice, this list":                 "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3":                                                                 "GPL",
		"All rights reserved.":                                                                                  "",
	} {
		if got := identify(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	text, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got := identify(string(text)); got != "BSD-3-Clause" {
		t.Errorf("our own licence: got %q", got)
	}
	if got := expression([]string{"MIT", "", "Apache-2.0", "MIT"}); got != "Apache-2.0 AND MIT" {
		t.Errorf("got %q", got)
	}
}
