"""Convex programs over a domain: no rounds, no policies."""
