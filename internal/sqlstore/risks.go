package sqlstore

import "context"

// Risks returns the server settings with which a crash can lose acknowledged changes or damage the database,
// each with a remedy.
//
// It also looks at all servers, so that Stale reports an old primary that nobody has tried to use.
func (p *Postgres) Risks(ctx context.Context) (risks []string, err error) {
	p.hosts.survey(ctx)
	const query = "SELECT current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off', current_setting('synchronous_commit') = 'off'"
	var fsync, pages, commits bool
	err = p.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			if err := rows.Scan(&fsync, &pages, &commits); err != nil {
				return err
			}
		}
		return rows.Err()
	}, query)
	if fsync {
		risks = append(risks, "fsync is off: a crash of the machine can lose acknowledged changes and damage the database; turn it on")
	}
	if pages {
		risks = append(risks, "full_page_writes is off: a crash of the machine can damage the database; turn it on")
	}
	if commits {
		risks = append(risks, "synchronous_commit is off: Fairlead overrides it for its own changes; turn it on for this database")
	}
	return risks, explain(err)
}

// Stale describes an old primary that accepts writes and was refused in the last minutes, or returns "".
func (p *Postgres) Stale() string { return p.timelines.warning() }
