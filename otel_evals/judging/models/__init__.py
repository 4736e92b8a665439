"""Judge models behind one protocol: `rules`, OpenAI-compatible, litellm."""
