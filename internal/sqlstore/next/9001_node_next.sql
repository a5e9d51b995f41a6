-- +goose Up
ALTER TABLE nodes ADD COLUMN next TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE nodes DROP COLUMN next;
