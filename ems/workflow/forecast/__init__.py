"""What an experiment asks a cluster for, and what it costs, before anything is submitted."""
