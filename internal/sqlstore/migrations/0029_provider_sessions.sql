-- +goose Up

-- Sessions at identity providers, hashed, with which people signed in. A logout may name only the session.
ALTER TABLE sessions ADD COLUMN provider_session TEXT NOT NULL DEFAULT '';
ALTER TABLE rechecks ADD COLUMN provider_session TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE rechecks DROP COLUMN provider_session;
ALTER TABLE sessions DROP COLUMN provider_session;
