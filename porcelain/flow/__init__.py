"""Session Flow: a conversation as the fold of immutable rounds over landed records.

=============  =============================================================================
``assembly``   from landed records to frames and rounds
``chain``      rounds in a store, and their fold
``formats``    the public formats ``sf/1`` and ``sd/1``, byte for byte
``folders``    conversations as files, and files of others taken in
``checking``   verification of a store's chains and of folders
``views``      the view document
``watching``   following live agents
``commands``   ``objstore flow ...``, one file a command
=============  =============================================================================
"""
