"""``objstore session ...``, one module a command. What the interactive session shows, it shows by the same functions:

``choosing``   the store, session and node that a command line means
``answering``  a question from the command line to the node that it becomes
``rendering``  trees, nodes and answers as lines of text
``style``      colours, where they are wanted
``draft``      an answer on the terminal while it is being written
"""
