"""forewise against other solvers on classic two-stage programs in SMPS.

`instances` finds or makes the programs, `extensive` is what the others are given, `peers` are they,
`worker` runs each in a process of its own, `run` is the bench and `report` its tables.
"""
