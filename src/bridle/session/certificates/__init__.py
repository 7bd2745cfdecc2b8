"""What a run proves about itself: sums, halfspaces, the proof that nothing is feasible, and the certificate in words."""
