"""``python -m pregel`` is the `pregel` command."""

from pregel.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
