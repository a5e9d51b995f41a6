package policy

import (
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// classTable holds the class of each node, in pages of consecutive ids that worlds share.
// Ids without a node have the class Nobody.
type classTable []*classPage

type classPage [pageSize]Class

const pageSize = 256

func (t classTable) at(id mesh.NodeID) Class {
	if i := int(id) / pageSize; i < len(t) && t[i] != nil {
		return t[i][id%pageSize]
	}
	return Nobody
}

// block returns a block of classes, nil if all are Nobody.
func (t classTable) block(first mesh.NodeID) []Class {
	if i := int(first) / pageSize; i < len(t) && t[i] != nil {
		return t[i][first%pageSize : first%pageSize+mesh.BlockSize]
	}
	return nil
}

// changed returns the nodes whose class differs from that in old.
func (t classTable) changed(old classTable) (ids []mesh.NodeID) {
	for i := range max(len(t), len(old)) {
		var a, b *classPage
		if i < len(t) {
			a = t[i]
		}
		if i < len(old) {
			b = old[i]
		}
		if a == b {
			continue
		}
		for k := range pageSize {
			if id := mesh.NodeID(i*pageSize + k); t.at(id) != old.at(id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// classEdit modifies a table whose pages may be shared: it copies a page before the
// first change.
type classEdit struct {
	table classTable
	own   map[*classPage]bool // pages that are not shared yet
}

func (e *classEdit) put(id mesh.NodeID, c Class) {
	if e.table.at(id) == c {
		return
	}
	i := int(id) / pageSize
	if i >= len(e.table) {
		e.table = append(e.table, make(classTable, i+1-len(e.table))...)
	}
	if p := e.table[i]; p == nil || !e.own[p] {
		fresh := new(classPage)
		if p != nil {
			*fresh = *p
		}
		if e.own == nil {
			e.own = map[*classPage]bool{}
		}
		e.own[fresh], e.table[i] = true, fresh
	}
	e.table[i][id%pageSize] = c
}
