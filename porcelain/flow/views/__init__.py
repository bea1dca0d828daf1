"""The view document: one conversation with its text, in the shape that the public tool publishes."""
