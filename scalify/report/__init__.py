"""The report of one verification, and its renderings: each rendering is one module with ``render(report) -> str``."""
