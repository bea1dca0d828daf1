"""Session trees: questions that branch, with cited answers, under one Merkle root.

The model (no commands, nothing is printed; all functions take a ``Store`` or a snapshot ``view``):

===================  ==================================================================================================
``identity``         session ids and Bates ids
``nodes``            the node object, ``node_hash``, ``subtree_hash``
``events``           the event object, bodies, ``event_hash``
``names``            the refs of sessions: ``heads``, ``session_ids``, ``Diverged``
``store``            ``Turn``, ``new_session``, ``add_turn``, ``add_turns``, ``set_label``
``change``           ``open_session``, ``Session``; ``Change``: what all writers work with
``places``           ``resolve_node``, ``current_seq``, ``move_to`` (cd), ``move_back``; ``AmbiguousLabel``
``listing``          ``list_sessions``, ``tree_rows``, ``branch_points``, ``show_node``, ``subtree_document``
``retention``        ``hold_open``, ``collect`` (gc), ``is_removed``
``checking``         ``chain_check``, ``check_all``
``refresh``          ``changes_since``, ``fetch_node`` for a server, ``Mirror`` for a client
``sqlite_view``      ``export_session``;  ``sqlite_reading``  ``check_file``;  ``sqlite_import``  ``import_session``
``proofs``           ``prove_node``, ``prove_insertion``;  ``proof_checking``  ``check_proof`` (needs no store)
``graft``            ``graft_heads``, ``join_heads``
``replay``           the tree that a chain of events stands for;  ``index``  the derived rows
``runs``             many events and nodes checked at a time;  ``run_finding``  with another process beside this one
===================  ==================================================================================================

>>> sid, state = new_session(store)
>>> added = add_turn(store, sid, Turn(question=..., answer=answer_id, cache_key=key, audit_mode="STRICT"))
>>> with store.snapshot() as view:
...     session = open_session(view, sid)
...     seq = resolve_node(view, session, "fork")
...     session.node(view, seq), session.answer(view, seq), session.state.root

A node is a ``seq`` in every call; ``identity.bates_of`` gives its Bates id.
"""
