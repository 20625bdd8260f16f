"""The only place that constructs adapters: settings in, ports out."""
