"""From a few languages to an experiment: what OPUS has of them, what of it to take, the file."""
