"""``objstore flow ...``: one file a command, and ``output``, the forms in which they print."""
