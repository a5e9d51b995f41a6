package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// policyRow is where a row of policies is scanned to.
func policyRow(p *mesh.Policy) []any {
	return []any{
		(*int64)(&p.Version), &p.Text, &p.Source, &p.Author, &p.Reason, (*int64)(&p.SavedAt), (*int64)(&p.ConfirmBy), (*int64)(&p.RevertTo),
	}
}

// policyRange reads versions from the first argument down to the second, newest
// first, at most as many as the third says.
func (s *schema) policyRange() string {
	return s.policies.selectAll() + " WHERE id <= $1 AND id >= $2 ORDER BY id DESC LIMIT $3"
}

// policiesBefore are the arguments of policyRange for store.History.Policies.
func policiesBefore(v mesh.PolicyVersion, limit int) []any {
	if v == 0 {
		v = mesh.MaxID + 1
	}
	return []any{int64(v) - 1, int64(1), limit}
}

func readPolicies(rows rowsReader) ([]mesh.Policy, error) {
	var out []mesh.Policy
	for rows.Next() {
		var p mesh.Policy
		if err := rows.Scan(policyRow(&p)...); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// onePolicy turns what policyRange found for a single version into it.
func onePolicy(v mesh.PolicyVersion, found []mesh.Policy, err error) (*mesh.Policy, error) {
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %v", store.ErrNoPolicy, v)
	}
	return &found[0], nil
}

// Policies implements store.History.
func (p *Postgres) Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	return p.policies(ctx, policiesBefore(before, limit))
}

// Policy implements store.History.
func (p *Postgres) Policy(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error) {
	found, err := p.policies(ctx, []any{int64(v), int64(v), 1})
	return onePolicy(v, found, err)
}

func (p *Postgres) policies(ctx context.Context, args []any) (out []mesh.Policy, err error) {
	err = p.use(ctx, answerTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, p.schema.policyRange(), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		out, err = readPolicies(rows)
		return err
	})
	return out, explain(err)
}

// Policies implements store.History.
func (l *SQLite) Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	return l.policies(ctx, policiesBefore(before, limit))
}

// Policy implements store.History.
func (l *SQLite) Policy(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error) {
	found, err := l.policies(ctx, []any{int64(v), int64(v), 1})
	return onePolicy(v, found, err)
}

func (l *SQLite) policies(ctx context.Context, args []any) (out []mesh.Policy, err error) {
	err = l.query(ctx, l.db, func(rows *sql.Rows) error {
		out, err = readPolicies(rows)
		return err
	}, l.schema.policyRange(), args...)
	return out, explain(err)
}
