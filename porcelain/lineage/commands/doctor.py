"""``objstore lineage doctor``: the same as ``objstore doctor``, where lineage looks for it."""

from __future__ import annotations

from porcelain import doctor

SUMMARY = doctor.SUMMARY
USAGE = f"lineage {doctor.USAGE}"
OPTIONS = doctor.OPTIONS
EXAMPLES = tuple(example.replace("objstore ", "objstore lineage ", 1) for example in doctor.EXAMPLES)
ARGUMENTS = doctor.ARGUMENTS
run = doctor.run
