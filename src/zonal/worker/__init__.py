"""The code that Spark's Python workers run: read, place, sort and write rows, with numpy and pyarrow and no JVM."""
