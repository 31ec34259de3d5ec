"""End-to-end measurements of ``scalify verify``, from files to verdict, and the demonstration."""
