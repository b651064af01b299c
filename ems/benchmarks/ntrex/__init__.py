"""NTREX-128: finding the translation of a news sentence."""
