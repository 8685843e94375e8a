"""`python -m api.cli`: the command `annals`."""

from api.cli.main import main

main()
