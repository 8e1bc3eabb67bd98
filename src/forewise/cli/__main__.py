"""`python -m forewise.cli` is `forewise`."""

from forewise.cli import main

main()
