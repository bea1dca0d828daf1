"""The edge of a command: its options, the standard streams, documents given to it, the store it works on."""
