"""Verification: of the chains in a store, and of folders that anybody wrote.

==================  ========================================================================
``store_check``     conversations of a store
``folder_check``    a folder;  ``folder_scan``  finding its files;  ``folder_files``  one file of it
``report``          what a check says;  ``junit``, ``annotations``  the same for CI
==================  ========================================================================
"""
