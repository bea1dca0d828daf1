"""What is claimed about pairs of conversations, what is decided, and the threads, marks and resume targets that follow.

Pure functions over a fold: nothing here reads a store but ``shared_records``, which compares landed records.
"""
