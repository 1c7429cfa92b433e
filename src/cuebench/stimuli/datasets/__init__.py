"""Published stimulus sets that ``cuebench fetch`` can get, one file each."""
