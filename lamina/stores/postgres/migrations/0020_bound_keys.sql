-- A key may be bound to a part of its tenant and to some verbs, and end by itself. NULL means without that bound.
ALTER TABLE api_keys
    ADD COLUMN verbs text[],
    ADD COLUMN workspaces text[],
    ADD COLUMN namespaces text[],
    ADD COLUMN users text[],
    ADD COLUMN agents text[],
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN rotated_at timestamptz,
    ADD COLUMN last_used_at timestamptz;
