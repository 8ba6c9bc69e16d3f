"""Run the command line as `python -m multiop`."""

from .cli import main

main()
