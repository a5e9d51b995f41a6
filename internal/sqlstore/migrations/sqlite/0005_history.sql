-- +goose Up

-- The actor, in columns that queries can filter by.
ALTER TABLE audit ADD COLUMN actor_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN actor_id   TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN actor_name TEXT NOT NULL DEFAULT '';
UPDATE audit SET actor_kind = coalesce(actor ->> 'kind', ''), actor_id = coalesce(actor ->> 'id', ''), actor_name = coalesce(actor ->> 'name', '');

-- Indexes for the history of one object, for the history of one kind, and for the
-- first revision at or after a time.
CREATE INDEX audit_object ON audit (object_id, rev, idx);
CREATE INDEX audit_kind ON audit (object_kind, rev, idx);
CREATE INDEX audit_at ON audit (at, rev);

-- Nodes that went online or offline: the last transition to each state per minute.
CREATE TABLE presence (
    node   INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    online INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    rev    INTEGER NOT NULL,
    idx    INTEGER NOT NULL,
    PRIMARY KEY (node, minute, online)
);
CREATE INDEX presence_position ON presence (rev, idx);

-- The revision up to which rows of a table may have been deleted.
CREATE TABLE forgotten (
    id  TEXT PRIMARY KEY,
    rev INTEGER NOT NULL
);
INSERT INTO forgotten (id, rev) VALUES ('audit', 0), ('presence', 0);

-- +goose Down
DROP TABLE forgotten;
DROP TABLE presence;
DROP INDEX audit_at;
DROP INDEX audit_kind;
DROP INDEX audit_object;
ALTER TABLE audit DROP COLUMN actor_name;
ALTER TABLE audit DROP COLUMN actor_id;
ALTER TABLE audit DROP COLUMN actor_kind;
