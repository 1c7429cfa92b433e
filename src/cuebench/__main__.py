"""``python -m cuebench`` is ``cuebench``."""

from cuebench.cli import main

main()
