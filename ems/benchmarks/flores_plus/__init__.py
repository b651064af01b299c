"""FLORES+: FLORES-200 as corrected and extended by the Open Language Data Initiative."""
