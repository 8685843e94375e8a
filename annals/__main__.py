"""`python -m annals`: the command `annals`."""

from annals.api.cli.main import main

if __name__ == "__main__":
    main()
