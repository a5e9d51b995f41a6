-- +goose Up
CREATE TABLE nexts (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL
);
CREATE INDEX nodes_next ON nodes (next);

-- +goose Down
DROP INDEX nodes_next;
DROP TABLE nexts;
