"""What each metric recovers when the truth is known: simulated studies of observers with a planted bias.

`designs` holds one file for each protocol: its stimuli, what a planted observer answers, and what each metric should
then be, in closed form. `studies` simulates and scores them, `tables` reads and writes what came out, `trust` says in
words how far each number can be trusted. What `cuebench calibrate` found is shipped beside this file.
"""
