"""The MCP server: the same verbs as the command line, over stdio or HTTP on this machine, and sessions of phase events.

`server` puts it together: tools (`verbs`, `phase_tools`, `approval`), `library` (resources and prompts), `jobs` (long work in a process
of its own, `worker`), `roots` (which paths a client may name), `fitting` (answers of bounded length), `web` (HTTP). Only modules that speak
the protocol import the SDK, so that a worker starts without it.
"""
