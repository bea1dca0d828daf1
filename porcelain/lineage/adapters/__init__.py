"""From what others keep to facts: one file for each sort of source. Raw inputs are only read."""
