"""A session as others see it: a page that is kept up to date, and a SQLite file.

===================  ==============================================================================
``refresh``          ``changes_since``, ``fetch_node`` for a server, ``Mirror`` for a client
``sqlite_view``      ``export_session``
``sqlite_reading``   ``check_file``: every hash in such a file
``sqlite_import``    ``import_session``
===================  ==============================================================================
"""
