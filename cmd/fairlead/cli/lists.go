package cli

// pageSize is how many elements of a long list are asked for at once. The time
// limit of an answer then holds for a page, over a slow line too.
const pageSize = 1000

// allPages reads a list page by page. fetch asks for what follows a cursor, and
// returns it with the cursor of what follows that, if something does.
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

// either makes a filter of two flags that exclude each other, such as --online
// and --offline.
func either(is, isNot bool, names string) (*bool, error) {
	switch {
	case is && isNot:
		return nil, wrongUsage("give only one of %s", names)
	case is || isNot:
		return &is, nil
	}
	return nil, nil
}
