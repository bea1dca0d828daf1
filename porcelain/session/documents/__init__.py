"""What answers are taken from: documents, their chunks, and finding the right ones.

===================  ==============================================================================
``kinds``            the objects: chunk, document, and the fact that a store has added one
``extractors``       from a file to its text;  ``conversations``  from an imported conversation
``chunking``         a text as chunks, and the Merkle root over them
``documents``        a document as objects
``adding``           files, folders and conversations into a store
``sources``          which documents a store has
``search_index``     the full-text index, derived and disposable
``retrieval``        from a question to the passages that may answer it
``wording``          how texts are compared: canonical form, words, stems, sentences
===================  ==============================================================================
"""
