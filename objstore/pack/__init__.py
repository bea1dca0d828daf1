"""Packs: one file format for sync, backup and bundles. ``objstore-pack(5)`` describes it.

``format`` has the layout and its limits, ``writer`` streams a selection of objects out, ``reader`` streams a pack in
and trusts nothing, ``checking`` holds what comes to its rules.
"""
