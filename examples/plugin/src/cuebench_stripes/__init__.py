"""Objects behind stripes: a cue, a metric, a protocol and a figure for cuebench, one file each."""
