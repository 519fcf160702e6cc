"""Entry point of the `millstream` command.

`serve` should be up before anybody notices, so it goes its own way: the framework of the other sub-commands alone
takes a sixth of the time that a server needs to be ready.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of the process and exit with its status."""
    if sys.argv[1:2] == ["serve"]:
        from millstream.cli.serve import serve

        sys.exit(serve(sys.argv[2:]))
    from millstream.cli.app import app

    app(prog_name="millstream")


if __name__ == "__main__":
    main()
