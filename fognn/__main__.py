r"""``python -m fognn``."""

from fognn.cli import main

main()
