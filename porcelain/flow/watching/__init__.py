"""Following live agents: waiting for ``changes``, and ``looking`` at what is new."""
