"""Sessions in a database: a session and its journal, where every acknowledged call survives ``kill -9``."""
