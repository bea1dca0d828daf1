"""The published folder layout: conversations of a store as files, and files of others taken in.

==================  ========================================================================
``layout``          where files stand, and what they are called
``export_chain``    the files of a conversation;  ``export_text``  with what was said
``export_folder``   publishing them, each whole or not at all
``import_foreign``  storing what others wrote;  ``import_records``, ``import_rounds``  by file
``import_kinds``    what is kept of such a folder beside its structure
==================  ========================================================================
"""
