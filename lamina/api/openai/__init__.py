"""The shapes of OpenAI's chat completions and responses: what is asked, what is answered, and where memory goes in."""
