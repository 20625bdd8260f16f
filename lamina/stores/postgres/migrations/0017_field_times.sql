-- When each field of a profile was stated, and each value that was withdrawn. A field without a time, of an older
-- release, has that of the profile.
ALTER TABLE profiles ADD COLUMN field_times jsonb NOT NULL DEFAULT '{}';
