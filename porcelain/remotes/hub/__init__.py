"""A hub that is nothing but files: a bucket, or a branch. Every writer has a small file of its own there, the only kind
that is ever replaced; all else is named by its SHA-256 and never changes. Readers join what they find.

=============================  ========================================================================================
``writers/<id>``               JSON: the hash that keys objects, the writer's segments in order, its merges, and what
                               stood here joined
``segments/<sha256>.<id>.<n>`` MessagePack: records, one for each pack that the writer pushed; or a merge
``packs/<sha256>.<id>.<n>``    a pack
``gone/<sha256>``              JSON: names of files that nobody needs any more
=============================  ========================================================================================

A record says which refs its pack offers, which older ids each of them goes back to, and how much of every writer stood
here when it was made: what the pack presumes is in that. So what is joined follows from the records alone, in whatever
order they are read, and no pack has to be opened for it.

A record has its number among those of its writer for ever, since other records count by it. Any writer may merge packs,
its own and others': a merge is a pack that has all that they have, and a record of it that stands for theirs, and it
says for which. Where the record of a pack is covered by a merge, a reader no longer needs either; who sees two merges
of which one covers all of the other goes by the larger. So merges by several writers at once harm nothing.

The name of a file ends in the id of the writer that made it and in the turn (how often its own file was replaced) with
which it made it known. A file that is not needed at a later turn never will be again, whatever a writer that was
stopped in between does when it goes on: that is what makes deleting safe. Files of format 1 have no such end, and are
never deleted from a bucket.

``files`` has what a hub needs of its storage, ``records`` what stands in its files, ``standing`` what follows from
them, ``wanting`` which packs bring what is wanted, ``reading``, ``merging`` and ``sweeping`` the work on them, and
``transport`` all of it as a transport.
"""
