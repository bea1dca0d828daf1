"""A conversation's chain of rounds in a store, and its fold.

==================  ========================================================================
``kinds``           the objects: frames and rounds
``naming``          the refs of chains, and finding a conversation by its id
``landed``          the landed pages of a conversation
``store``           the chain of a conversation, and what assembly reads there
``folding``         the fold of rounds;  ``frames``  frames that are decoded when asked for
``fold_store``      the fold of a chain, from where it was saved last
``standing_store``  where assembly stands, between two runs;  ``sealing``  both with a checksum
``diff_frames``     what changed from one frame to another
==================  ========================================================================
"""
