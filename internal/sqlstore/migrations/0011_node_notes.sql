-- +goose Up
ALTER TABLE nodes ADD COLUMN note TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes DROP COLUMN note;
