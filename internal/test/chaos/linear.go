package chaos

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is a request that reads or writes a register, which is a text that requests replace, and what the
// caller was told about it. Times are nanoseconds since the beginning of the run.
type Operation struct {
	Client   int    `json:"client"`
	Register string `json:"register"`
	Write    bool   `json:"write,omitempty"`
	Value    string `json:"value"` // written or read
	Call     int64  `json:"call"`
	Return   int64  `json:"return,omitempty"` // 0 if the caller gave up: the write may happen at any time, or never
	// Revision is that of the response; 0 if it has none, or repeats an earlier response.
	Revision int64 `json:"revision,omitempty"`
	Tries    int   `json:"tries,omitempty"`
}

func (o Operation) String() string {
	verb := "read"
	if o.Write {
		verb = "write"
	}
	return fmt.Sprintf("%s of %q in %s at revision %d, from %v to %v", verb, o.Value, o.Register, o.Revision, time.Duration(o.Call), time.Duration(o.Return))
}

// Linearizable reports each register whose history no order of the operations explains that keeps apart what
// did not overlap in time. Registers are empty at first. It gives up after a limit, which is also a finding.
func Linearizable(history []Operation, limit time.Duration) (found []Finding) {
	registers := map[string][]porcupine.Operation{}
	for _, o := range history {
		if o.Return == 0 {
			if !o.Write {
				continue
			}
			o.Return = math.MaxInt64
		}
		registers[o.Register] = append(registers[o.Register], porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Output: o.Value, Return: o.Return})
	}
	model := porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if input.(Operation).Write {
				return true, output
			}
			return state == output, state
		},
	}
	for name, operations := range registers {
		switch porcupine.CheckOperationsTimeout(model, operations, limit) {
		case porcupine.Illegal:
			found = append(found, Finding{Unseen, fmt.Sprintf("the %d operations on %s are not linearizable", len(operations), name)})
		case porcupine.Unknown:
			found = append(found, Finding{Error, fmt.Sprintf("the %d operations on %s could not be checked within %v", len(operations), name, limit)})
		case porcupine.Ok:
		}
	}
	return found
}

// Revisions reports responses with a revision that is too old: a write gets a later revision than every
// response before its request, and a read no earlier one.
func Revisions(history []Operation) (found []Finding) {
	begun, ended := slices.Clone(history), []Operation{}
	for _, o := range history {
		if o.Return != 0 && o.Revision != 0 {
			ended = append(ended, o)
		}
	}
	slices.SortFunc(begun, func(a, b Operation) int { return int(a.Call - b.Call) })
	slices.SortFunc(ended, func(a, b Operation) int { return int(a.Return - b.Return) })
	var newest Operation // of those that returned before
	for _, o := range begun {
		for len(ended) > 0 && ended[0].Return < o.Call {
			if ended[0].Revision > newest.Revision {
				newest = ended[0]
			}
			ended = ended[1:]
		}
		late := o.Revision < newest.Revision || o.Write && o.Revision == newest.Revision
		if o.Return != 0 && o.Revision != 0 && late {
			found = append(found, Finding{Unseen, fmt.Sprintf("%s: came after %s", o, newest)})
		}
	}
	return found
}

// Issue is an ID that a caller was told, with the name of the object.
type Issue struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Kept compares the objects that callers were told they created with those that exist at the end. Objects that
// may have been deleted need not exist.
func Kept(created []Issue, deleted map[string]bool, final []Issue) (found []Finding) {
	names, ids := map[string]string{}, map[string]string{}
	for _, list := range [][]Issue{created, final} {
		for _, i := range list {
			if id, known := names[i.Name]; known && id != i.ID {
				found = append(found, Finding{Reused, fmt.Sprintf("%s was created with the ID %s and with the ID %s", i.Name, id, i.ID)})
			}
			if name, known := ids[i.ID]; known && name != i.Name {
				found = append(found, Finding{Reused, fmt.Sprintf("the ID %s was given to %s and to %s", i.ID, name, i.Name)})
			}
			names[i.Name], ids[i.ID] = i.ID, i.Name
		}
	}
	there := map[Issue]int{}
	for _, i := range final {
		if there[i]++; there[i] > 1 {
			found = append(found, Finding{Shared, fmt.Sprintf("%s exists twice", i.Name)})
		}
	}
	for _, i := range created {
		if there[i] == 0 && !deleted[i.Name] {
			found = append(found, Finding{Lost, fmt.Sprintf("%s with the ID %s was acknowledged", i.Name, i.ID)})
		}
	}
	return found
}
