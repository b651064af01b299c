"""Training: a job, its steps, its record; a resumed run gives the bits of an uninterrupted one."""
