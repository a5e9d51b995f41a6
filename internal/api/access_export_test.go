package api

// NounOfEachOperation is by what scope each operation is opened that needs one.
func NounOfEachOperation() map[string]string {
	nouns := map[string]string{}
	for op, n := range needs() {
		if !n.anyone {
			nouns[op] = string(n.noun)
		}
	}
	return nouns
}
