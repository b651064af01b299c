"""The training objectives, one file each (EMS v2 section III-B to III-D)."""
