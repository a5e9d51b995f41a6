-- +goose Up
ALTER TABLE preauth_keys ADD COLUMN description TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE preauth_keys DROP COLUMN description;
