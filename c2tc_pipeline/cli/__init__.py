"""The ``c2tc`` command: one file a group of subcommands; nothing heavy is imported before it is needed."""
