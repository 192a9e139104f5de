"""Values outside Python expressions: configuration files, shell scripts and declared options."""
