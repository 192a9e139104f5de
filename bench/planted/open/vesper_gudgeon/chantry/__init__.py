"""Hears by how many cents each voice of a choir is off."""
