"""The shapes of OpenAI's chat completions and responses: questions, answers, and the place for memory."""
