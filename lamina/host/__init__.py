"""Access to the machine: optional libraries, private files, secrets in files, and TLS authorities."""
