"""Words, sentences, numbers, dates, and when two texts say the same."""
