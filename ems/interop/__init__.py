"""EMS inside other tools: a filter of OpusCleaner (ems_score.json), one of OpusFilter."""
