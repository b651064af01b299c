"""xsim++: xsim with slightly altered English sentences among the candidates."""
