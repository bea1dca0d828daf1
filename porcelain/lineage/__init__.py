"""Lineage: which conversation came from which, and why we believe it. From the bottom up:

``tables``      the tables of the view: columns, words that they may hold, SQLite statements
``facts``       what is known, as frames of the store's own chain: kinds, ids, revisions, the joined fold, plain rows
``adapters``    from what others keep to facts: landed conversations, manifests, sidecar files, repositories, backups
``landed``      the landed records of a file: its pages, when they were written, rows of the ``events`` table
``relations``   the rules: from facts and landed records to edges, threads, resume targets and marks
``derived``     all of it for one fold, and its rows
``index``       the rows of the view in a SQLite file beside the store, brought up to date by what is new
``curation``    what people state by command
``usage``       model calls, tokens, active time
``views``       graph, timeline, inventory, evidence report: models, pictures, texts
``exports``     JSON, SQLite, Parquet, compatibility files
``commands``    ``objstore lineage ...``

A package imports those above it in this list, never one below.
"""
