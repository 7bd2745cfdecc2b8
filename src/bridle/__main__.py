"""`python -m bridle` and the command `bridle`: the command line, where the package is whole."""

import sys


def main() -> None:
    """Run the command line, or say in one line why it cannot run: the other project called `bridle` has overwritten the package."""
    import bridle

    if not hasattr(bridle, "policy_for"):
        sys.exit(
            "bridle: the package bridle is not that of bridle-oco: another distribution called 'bridle' has overwritten or removed "
            "its files. Repair: pip uninstall bridle bridle-oco, then pip install bridle-oco"
        )
    from bridle import cli

    cli.main()


if __name__ == "__main__":
    main()
