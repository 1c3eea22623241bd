"""Tables larger than memory: a made one of any size, and what it takes to condense it in blocks and in memory."""
