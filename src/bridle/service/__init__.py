"""The decision service: sessions by name over HTTP, each of them in a journal; what is acknowledged is durable."""
