"""What an experiment will ask a cluster for, and what it will cost, before anything is submitted."""
