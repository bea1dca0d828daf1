"""Uniting stores: the rules by which refs join, the manifest two stores compare, and the ways between them.

``joining`` has the rules, ``manifest`` the comparison, ``receiving`` the one transaction that takes a pack in,
``exchange`` fetching and pushing over any ``transport``; ``stores``, ``pipes`` and ``bundles`` are transports.
"""
