from stamps import transforms  # noqa: F401  (fills the registry)
