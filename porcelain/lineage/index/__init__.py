"""The index of lineage: all rows of the view in a SQLite file beside the store, brought up to date by what is new.

Facts that may bear on one another share *tokens* (an observation's id, a session's, a path, a record that two files
hold) and so fall into *groups*. What follows from a group follows from nothing else, so that after an import only the
groups that something new belongs to are derived again. Only neighbours in a folder and buckets go across groups;
``folders`` keeps those.

The index is derived: it may be deleted at any time, and one that is missing, damaged, of another program version or of
a history that the store does not have is made anew.
"""
