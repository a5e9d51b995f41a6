-- +goose Up
ALTER TABLE nodes ADD COLUMN stable_id TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes DROP COLUMN stable_id;
