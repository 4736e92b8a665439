"""From facts to turns to completed sessions."""
