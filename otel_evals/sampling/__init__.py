"""Which sessions are judged, with which known probability, and what may be concluded from those that were."""
