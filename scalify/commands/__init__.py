"""The subcommands of ``scalify``: each module has ``add(subparsers)`` and ``run(options) -> exit status``."""
