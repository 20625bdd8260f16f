"""Everything a user can set: a section for each part, each field with a default and a line of documentation."""
