"""Training: a job, its steps, its record. A resumed run gives the bits of an uninterrupted one."""
