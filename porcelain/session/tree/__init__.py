"""The tree of a session: its nodes, its events, and everything that reads or changes them.

===================  ==============================================================================
``identity``         session ids and Bates ids
``nodes``            the node object, ``node_hash``, ``subtree_hash``
``events``           the event object, bodies, ``event_hash``
``names``            the refs of sessions: ``heads``, ``session_ids``;  ``derived_refs``  those computed
``replay``           the tree that a chain of events stands for, made again from its objects
``index``            the derived rows, one a node
``change``           ``open_session``, ``Session``; ``Change``: what all writers work with
``store``            ``Turn``, ``new_session``, ``add_turn``, ``add_turns``, ``set_label``
``places``           ``resolve_node``, ``current_seq``, ``move_to`` (cd), ``move_back``
``listing``          ``list_sessions``, ``tree_rows``, ``branch_points``, ``show_node``
``graft``            ``graft_heads``, ``join_heads``: sessions that went on in several places
``retention``        ``hold_open``, ``collect`` (gc), ``bring_back``
===================  ==============================================================================
"""
