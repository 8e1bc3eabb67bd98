"""`python -m forewise` is `forewise`."""

from forewise.cli import main

main()
