-- The state of the user's profile of the whole tenant from which a response was made; null where there was none.
ALTER TABLE responses ADD COLUMN user_profile text;
