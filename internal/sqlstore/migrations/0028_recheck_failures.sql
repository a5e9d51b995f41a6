-- +goose Up

-- Since when an identity provider has given no useful answer about a person.
ALTER TABLE rechecks ADD COLUMN failing_since INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE rechecks DROP COLUMN failing_since;
