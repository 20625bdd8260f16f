"""What a process finds on its machine: libraries, private files and secrets in them, authorities of TLS."""
