"""Score recorded runs: the same engine as live, with a clock moved by hand."""
