package policy

import (
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// classTable holds the class of each node, in pages of neighbouring ids that
// worlds share; Nobody where there is no node.
type classTable []*classPage

type classPage [pageSize]Class

const pageSize = 256

func (t classTable) at(id mesh.NodeID) Class {
	if i := int(id) / pageSize; i < len(t) && t[i] != nil {
		return t[i][id%pageSize]
	}
	return Nobody
}

// block is nil when all of it is Nobody.
func (t classTable) block(first mesh.NodeID) []Class {
	if i := int(first) / pageSize; i < len(t) && t[i] != nil {
		return t[i][first%pageSize : first%pageSize+mesh.BlockSize]
	}
	return nil
}

// changed names the nodes that have another class in old.
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

// classEdit changes a table whose pages others may share.
type classEdit struct {
	table classTable
	own   map[*classPage]bool // pages that nobody shares yet
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
