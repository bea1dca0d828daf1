"""From a question to an answer that is cited, checked and kept.

===================  ==============================================================================
``asking``           the whole way: passages, kept answers, the answerer, the check, the keeping
``cache_key``        the key under which an answer can be served again
``answerers``        what an answerer is;  ``extract_answerer``, ``openai_answerer``  the two there are
``event_stream``     reading what an endpoint streams
``pointers``         pointers from claims to passages
``grounding``        the check of an answer against its passages, by words alone
``kinds``            the objects: an answer, and a fact about its state
``answers``          the answers of a store;  ``answers_export``  as the public table
===================  ==============================================================================
"""
