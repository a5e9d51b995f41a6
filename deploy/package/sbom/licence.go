package main

import (
	"slices"
	"strings"
)

// identify returns the SPDX identifier of a licence text by a sentence that occurs in it, or
// "" for an unknown one. The first match counts.
func identify(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, l := range []struct{ id, sentence string }{
		{"Apache-2.0", "Apache License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License, version 2.0"},
		{"OFL-1.1", "SIL OPEN FONT LICENSE Version 1.1"},
		{"GPL", "GNU GENERAL PUBLIC LICENSE"},
		{"LGPL", "GNU LESSER GENERAL PUBLIC LICENSE"},
		{"AGPL", "GNU AFFERO GENERAL PUBLIC LICENSE"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
		{"BSD-3-Clause", "to endorse or promote products derived from this software"},
		{"BSD-2-Clause", "Redistributions of source code must retain the above copyright notice"},
		{"Unlicense", "This is free and unencumbered software released into the public domain"},
		{"CC0-1.0", "CC0 1.0 Universal"},
	} {
		if strings.Contains(text, strings.ToLower(l.sentence)) {
			return l.id
		}
	}
	return ""
}

// expression combines the licences of a module, all of which apply to a part of it.
func expression(ids []string) string {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND ")
}
