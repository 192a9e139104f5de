"""The gate as workflows: measure, evaluate, compare, pair and keep, for the command line and MCP alike."""
