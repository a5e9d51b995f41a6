-- +goose Up

-- What was decided about each route of a node, which of them lead through it and
-- no other, and whether it answers.
ALTER TABLE nodes ADD COLUMN all_routes TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN primary_routes TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN unwell INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN unwell;
ALTER TABLE nodes DROP COLUMN primary_routes;
ALTER TABLE nodes DROP COLUMN all_routes;
