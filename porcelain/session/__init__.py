"""Session trees: questions that branch, with cited answers, under one Merkle root.

===================  ==============================================================================
``tree``             the nodes and events of a session, read and changed
``answering``        from a question to an answer that is cited, checked and kept
``documents``        what answers are taken from, and finding it
``integrity``        checks of the whole, proofs of a part
``exchange``         page refresh, SQLite files
``commands``         ``objstore session ...``, one file a command;  ``repl``  the same at a prompt
===================  ==============================================================================

All but the last row print nothing and take a ``Store`` or a snapshot ``view``:

>>> sid, state = new_session(store)
>>> added = add_turn(store, sid, Turn(question=..., answer=answer_id, cache_key=key, audit_mode="STRICT"))
>>> with store.snapshot() as view:
...     session = open_session(view, sid)
...     seq = resolve_node(view, session, "fork")
...     session.node(view, seq), session.answer(view, seq), session.state.root

A node is a ``seq`` in every call; ``tree.identity.bates_of`` gives its Bates id.
"""
