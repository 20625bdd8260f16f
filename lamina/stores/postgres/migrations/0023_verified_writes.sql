-- Whether a profile, a memory profile or a response was written by the user or agent itself, or by an admin. NULL means
-- that nobody knows. The marks name the write that they belong to, since an older release writes without them.
ALTER TABLE profiles ADD COLUMN verified_fields text[], ADD COLUMN verified_version integer;
ALTER TABLE memory_profiles ADD COLUMN verified_at timestamptz;
ALTER TABLE responses ADD COLUMN is_verified boolean;
