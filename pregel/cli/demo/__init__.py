"""The demos: a trip that is booked, and two files that are reviewed, across a real SIGKILL."""
