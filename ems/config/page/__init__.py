"""The JSON schemas and docs/config.md, made from the settings (`python -m ems.config.page`)."""
