"""Set-up of a clone: what every command needs, made once and checked in well under a second."""
