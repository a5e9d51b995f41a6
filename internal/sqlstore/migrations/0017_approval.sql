-- +goose Up
ALTER TABLE nodes ADD COLUMN needs_approval INTEGER NOT NULL DEFAULT 0;
ALTER TABLE preauth_keys ADD COLUMN pre_approved INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN needs_approval;
ALTER TABLE preauth_keys DROP COLUMN pre_approved;
