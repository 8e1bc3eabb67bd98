"""Checks of what a user passed, once at the border: every message names the argument.

`parameters` has one validator for each kind of setting, `arguments` makes tensors of numbers,
`frames` knows pandas without importing it, `tables` checks contexts and outcomes, `given` holds
what is known in each context.
"""

from forewise.validation.frames import is_frame, is_series

__all__ = ["is_frame", "is_series"]
