-- +goose Up

-- Who acted, in columns that can be asked for.
ALTER TABLE audit ADD COLUMN actor_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN actor_id   TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN actor_name TEXT NOT NULL DEFAULT '';
UPDATE audit SET actor_kind = coalesce(actor ->> 'kind', ''), actor_id = coalesce(actor ->> 'id', ''), actor_name = coalesce(actor ->> 'name', '');

-- One object's history; what happened to a kind of objects; and the revision at
-- which a time began.
CREATE INDEX audit_object ON audit (object_id, rev, idx);
CREATE INDEX audit_kind ON audit (object_kind, rev, idx);
CREATE INDEX audit_at ON audit (at, rev);

-- Nodes that came and went: the last of each state in a minute.
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

-- The revision up to which rows of a table may be gone.
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
