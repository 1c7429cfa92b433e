"""``python -m cuebench`` is ``cuebench``."""

from cuebench.cli import main

if __name__ == "__main__":
    main()
