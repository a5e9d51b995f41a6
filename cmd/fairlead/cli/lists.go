package cli

// pageSize is how many elements of a long list are requested at once. The timeout of a request then applies
// to a page, which helps on slow connections.
const pageSize = 1000

// allPages reads a list page by page. fetch returns the page after a cursor, and the cursor of the next page,
// if there is one.
func allPages[T any](fetch func(limit *int, cursor *string) ([]T, *string, error)) ([]T, error) {
	all, limit := []T{}, pageSize
	for cursor := (*string)(nil); ; {
		page, next, err := fetch(&limit, cursor)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == nil {
			return all, nil
		}
		cursor = next
	}
}

// either combines two flags that exclude each other, such as --online and --offline, into a filter.
func either(is, isNot bool, names string) (*bool, error) {
	switch {
	case is && isNot:
		return nil, wrongUsage("use only one of %s", names)
	case is || isNot:
		return &is, nil
	}
	return nil, nil
}
