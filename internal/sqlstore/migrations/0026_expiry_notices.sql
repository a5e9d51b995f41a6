-- +goose Up
ALTER TABLE nodes ADD COLUMN expiry_notice INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN expiry_notice;
