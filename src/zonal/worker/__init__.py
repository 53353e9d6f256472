"""What Spark's Python workers run: read, place, sort and write rows. Needs numpy and pyarrow, and no JVM."""
