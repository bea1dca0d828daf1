"""That a session is what it says it is: checks of the whole, and proofs of a part.

===================  ==============================================================================
``checking``         ``chain_check``, ``check_all``
``runs``             events and nodes in a row checked many at a time
``run_finding``      finding the runs, with another process where the session is large
``proofs``           ``prove_node``, ``prove_insertion``
``proof_checking``   ``check_proof``, which needs no store
===================  ==============================================================================
"""
