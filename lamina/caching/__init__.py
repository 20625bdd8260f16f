"""The cache stack at work: answers, responses, walks and embeddings that are served again instead of computed."""
