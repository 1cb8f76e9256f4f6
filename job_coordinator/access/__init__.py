"""What the programs of one submission show each other: token, certificate, and their exchange."""
