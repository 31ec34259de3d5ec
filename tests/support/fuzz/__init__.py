"""Random, damaged and hostile input for the whole way from files to a report. ``python -m tests.support.fuzz`` runs thousands of inputs."""
