"""From a table of days to decisions, with a certificate for each: what a planner needs.

`roles` says which column is what and reads tables by it, `contexts` makes the contexts, `leaks`
looks for columns that know the future, `certificate` has costs and intervals, `policy` is
what is stored and decides, `planner` fits it and `evaluation` evaluates it. What decides needs no
code that trains: this module imports nothing, and `fw.Planner`, `fw.PlannerPolicy` and
`fw.load_policy` are where they are used from.
"""
